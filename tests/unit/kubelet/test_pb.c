#include "kubelet/pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"
#include "harness/sweep.h"
#include "kubelet/proto/device_plugin.pb-c.h"

static void names(void **state)
{
	char longest[PB_MAX_NAME_BYTES + 2];
	static const struct {
		const char *name;
		bool ok;
	} cases[] = {
		{ "g0::0", true }, { "GPU-1/2", true }, { "", false },         { "a b", false },
		{ "a\nb", false }, { "a\x7f", false },  { "\xc3\xa4", false }, { "~", true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++)
		assert_int_equal(pb_name_ok(cases[i].name), cases[i].ok);
	memset(longest, 'x', sizeof longest);
	longest[PB_MAX_NAME_BYTES] = '\0';
	assert_true(pb_name_ok(longest));
	longest[PB_MAX_NAME_BYTES] = 'x';
	longest[PB_MAX_NAME_BYTES + 1] = '\0';
	assert_false(pb_name_ok(longest));
}

static void ids(void **state)
{
	char *good[] = { (char[]) { "a" }, (char[]) { "b" } }, *bad[] = { (char[]) { "a" }, (char[]) { "" } };
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(pb_check_ids("devices_ids", good, 2, &e), 0);
	assert_int_equal(pb_check_ids("devices_ids", bad, 2, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "devices_ids: id 1 is not 1 to 253 printable characters");
	assert_int_equal(pb_check_ids("devices_ids", good, PB_MAX_IDS + 1, &e), -HM_ELIMIT);
}

/* A field length above 127 takes two bytes. */
static void field_lengths(void **state)
{
	hm_auto_str out = { 0 }, again = { 0 }, one = { 0 };
	V1beta1__CDIDevice m = V1BETA1__CDIDEVICE__INIT;
	char name[201];

	(void)state;
	memset(name, 'x', 200);
	name[200] = '\0';
	m.name = name;
	pb_pack_field(&out, 5, &m);
	assert_int_equal(out.n, 1 + 2 + 1 + 2 + 200);
	assert_memory_equal(out.p, "\x2a\xcb\x01\x0a\xc8\x01", 6); /* 203 = 0x4b | 1 << 7, 200 = 0x48 | 1 << 7 */
	pb_pack(&one, &m);
	pb_add_field(&again, 5, &one);
	assert_int_equal(again.n, out.n);
	assert_memory_equal(again.p, out.p, out.n);
}

static void bad_bytes(void **state)
{
	struct hm_err e = { 0 };
	/* a field of 5 bytes that has 2; then a string field sent as a number */
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = { { "\x0a\x05hi", 4 }, { "\x0a", 1 }, { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11 } };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		assert_null(pb_unpack(&v1beta1__allocate_request__descriptor, "AllocateRequest", cases[i].bytes,
				      cases[i].n, &e));
		assert_int_equal(e.code, HM_EPROTO);
	}
	assert_string_equal(e.msg, "the 11 bytes are no AllocateRequest");
}

/* Unknown fields are there in every newer kubelet. */
static void unknown_fields(void **state)
{
	struct hm_err e = { 0 };
	pb_auto V1beta1__CDIDevice *m = pb_unpack(&v1beta1__cdidevice__descriptor, "CDIDevice",
						  "\x0a\x01x\xf8\x06\x07\x52\x03new", 3 + 3 + 5, &e);

	(void)state;
	assert_non_null(m);
	assert_string_equal(m->name, "x");
}

static int scenario(void *arg)
{
	hm_auto_str out = { 0 };
	V1beta1__PreStartContainerRequest m = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
	char *list[] = { (char[]) { "g0::0" }, (char[]) { "g0::1" } };
	struct hm_err e;

	(void)arg;
	m.devices_ids = list;
	m.n_devices_ids = 2;
	pb_pack(&out, &m);
	if (str_failed(&out))
		return -1;
	pb_auto V1beta1__PreStartContainerRequest *back = pb_unpack(&v1beta1__pre_start_container_request__descriptor,
								    "PreStartContainerRequest", out.p, out.n, &e);
	if (back == NULL) {
		assert_int_equal(e.code, HM_ENOMEM);
		return -1;
	}
	assert_string_equal(back->devices_ids[1], "g0::1");
	return 0;
}

static void sweep(void **state)
{
	(void)state;
	sweep_check("pb", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),          cmocka_unit_test(ids),
		cmocka_unit_test(field_lengths),  cmocka_unit_test(bad_bytes),
		cmocka_unit_test(unknown_fields), cmocka_unit_test(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
