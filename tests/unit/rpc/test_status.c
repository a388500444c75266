#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/err.h"
#include "rpc/status.h"

/* Names and numbers as in gRPC's statuscodes.md. */
static const struct {
	int status;
	const char *name;
} names[] = {
	{ 0, "OK" },
	{ 1, "CANCELLED" },
	{ 2, "UNKNOWN" },
	{ 3, "INVALID_ARGUMENT" },
	{ 4, "DEADLINE_EXCEEDED" },
	{ 5, "NOT_FOUND" },
	{ 6, "ALREADY_EXISTS" },
	{ 7, "PERMISSION_DENIED" },
	{ 8, "RESOURCE_EXHAUSTED" },
	{ 9, "FAILED_PRECONDITION" },
	{ 10, "ABORTED" },
	{ 11, "OUT_OF_RANGE" },
	{ 12, "UNIMPLEMENTED" },
	{ 13, "INTERNAL" },
	{ 14, "UNAVAILABLE" },
	{ 15, "DATA_LOSS" },
	{ 16, "UNAUTHENTICATED" },
	{ 17, "UNKNOWN" },
	{ -1, "UNKNOWN" },
	{ INT_MAX, "UNKNOWN" },
	{ INT_MIN, "UNKNOWN" },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_string_equal(rpc_status_name(names[i].status), names[i].name);
}

static void test_codes(void **state)
{
	static const struct {
		int code, status;
	} cases[] = {
		{ HM_OK, 0 },          { HM_ENOMEM, 8 },     { -HM_ENOMEM, 8 },        { HM_EINVAL, 3 },
		{ HM_EPROTO, 13 },     { HM_EIO, 13 },       { HM_ENOTFOUND, 5 },      { -HM_ENOTFOUND, 5 },
		{ HM_EEXIST, 6 },      { HM_EAGAIN, 14 },    { HM_EPERM, 7 },          { HM_ELIMIT, 8 },
		{ HM_ETIMEDOUT, 4 },   { HM_EINTERNAL, 13 }, { -HM_EUNSUPPORTED, 12 }, { HM_CODE_COUNT, 2 },
		{ -HM_CODE_COUNT, 2 }, { INT_MIN, 2 },       { INT_MAX, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(rpc_status_of(cases[i].code), cases[i].status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
