#include "model/resource_name.h"

#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

static void names(void **state)
{
	static const struct {
		const char *name, *want; /* NULL: good */
	} rows[] = {
		{ "nvidia.com/gpu", NULL },
		{ "a/b", NULL },
		{ "gpu", "is not of the form domain/name" },
		{ "/gpu", "is not of the form domain/name" },
		{ "a/", "is not of the form domain/name" },
		{ "a/b/c", "is not of the form domain/name" },
		{ "", "is not of the form domain/name" },
		{ "a/b c", "has a character that is no letter, digit, '-', '_' or '.'" },
		{ "kubernetes.io/gpu", "is in kubernetes.io, which the kubelet refuses" },
		{ "x.kubernetes.io/gpu", "is in kubernetes.io, which the kubelet refuses" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const char *got = resource_name_fault(rows[i].name);

		if (rows[i].want == NULL)
			assert_null(got);
		else
			assert_string_equal(got, rows[i].want);
	}
}

static void no_longer_than_the_kubelet_takes(void **state)
{
	char name[202];

	(void)state;
	memset(name, 'a', sizeof name);
	name[1] = '/';
	name[200] = '\0';
	assert_null(resource_name_fault(name));
	name[200] = 'a';
	name[201] = '\0';
	assert_non_null(resource_name_fault(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(no_longer_than_the_kubelet_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
