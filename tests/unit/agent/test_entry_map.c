#include "agent/cluster/entry_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "harness/unit.h"

#define ONE "A,NVIDIA,3000,30:;"
#define TWO "B,NVIDIA,5000,0:C,NVIDIA,5000,0:;"

/* A pod from a text of digits: devices that each container asks for, "i" before those of init containers. */
static struct pod_view *make_pod(const char *asks)
{
	struct pod_view *v = calloc(1, sizeof *v);

	v->containers = calloc(strlen(asks) + 1, sizeof *v->containers);
	for (; *asks != '\0'; asks++) {
		struct pod_container *c = &v->containers[v->container_count++];

		c->kind = *asks == 'i' ? POD_INIT : POD_APP;
		asks += *asks == 'i';
		c->gpus = (uint32_t)(*asks - '0');
		hm_fmt(c->name, sizeof c->name, "c%zu", v->container_count - 1);
	}
	return v;
}

/* "<entry>" or the error, of each container that asks for devices. */
static void check(const char *asks, const char *text, const char *want)
{
	hm_auto(pod_view) *pod = make_pod(asks);
	hm_auto_pod_devices devices = { 0 };
	char got[2048] = "";
	struct hm_err e;

	assert_int_equal(devices_text_parse(text, &devices, &e), 0);
	for (size_t i = 0, n = 0; i < pod->container_count; i++) {
		size_t entry = 0;

		if (pod->containers[i].gpus == 0)
			continue;
		n += hm_fmt(got + n, sizeof got - n, "%s", n > 0 ? " | " : "");
		if (entry_map_find(pod, &devices, pod->containers[i].name, &entry, &e) < 0)
			n += hm_fmt(got + n, sizeof got - n, "%s", e.msg);
		else
			n += hm_fmt(got + n, sizeof got - n, "%zu", entry);
	}
	assert_string_equal(got, want);
}

/* The reference's table of texts (5.3), and what schedulers make of them. */
static void entries_that_fit(void **state)
{
	static const struct {
		const char *asks, *text, *want;
	} rows[] = {
		{ "1", ONE, "0" },
		{ "11", ONE ONE, "0 | 1" },
		{ "012", ";" ONE TWO, "1 | 2" },
		{ "012", ONE TWO, "0 | 1" }, /* the short form */
		{ "i11", ONE ONE, "0 | 1" }, /* init first */
		{ "i01", ";" ONE, "1" },
		{ "i01", ONE, "0" },
		{ "i10", ONE ";", "0" },
		{ "101", ONE ";" ONE, "0 | 2" },
		{ "101", ONE ONE, "0 | 1" },
		{ "1", ONE ";;;;", "0" }, /* empty entries behind never matter */
		{ "1", ";;;" ONE, "3" },
		{ "1", "A,NVIDIA,1,2:", "0" },                                    /* no ';' at the end */
		{ "01", ",,0,0:;" ONE, "1" },                                     /* a placeholder is empty */
		{ "11", ";" ONE, "the scheduler gave container c0 nothing | 1" }, /* by position */
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		check(rows[i].asks, rows[i].text, rows[i].want);
}

static void entries_that_do_not_fit(void **state)
{
	static const struct {
		const char *asks, *text, *want;
	} rows[] = {
		{ "1", "",
		  "0 entries with devices (of 0) fit neither the 1 containers that ask for them nor the pod's 1 "
		  "containers by position" },
		{ "1", ";;",
		  "0 entries with devices (of 2) fit neither the 1 containers that ask for them nor the pod's "
		  "1 containers by position" },
		{ "1", ";", "the scheduler gave container c0 nothing" },
		{ "1", ",,0,0:;", "the scheduler gave container c0 nothing" },
		{ "1", ONE ONE,
		  "2 entries with devices (of 2) fit neither the 1 containers that ask for them nor the "
		  "pod's 1 containers by position" },
		/* one too many, though there is an entry for each: the second container asks for nothing */
		{ "10", ONE ONE,
		  "2 entries with devices (of 2) fit neither the 1 containers that ask for them nor the "
		  "pod's 2 containers by position" },
		/* a container injected after scheduling: nothing says which of the two the entry is for */
		{ "11", ONE,
		  "1 entries with devices (of 1) fit neither the 2 containers that ask for them nor the pod's 2 "
		  "containers by position | 1 entries with devices (of 1) fit neither the 2 containers that ask "
		  "for them nor the pod's 2 containers by position" },
		/* HAMi v2.8 would mean the second: it wrote none for init containers */
		{ "i11", ONE,
		  "1 entries with devices (of 1) fit neither the 2 containers that ask for them nor the pod's 2 "
		  "containers by position | 1 entries with devices (of 1) fit neither the 2 containers that ask "
		  "for them nor the pod's 2 containers by position" },
		{ "2", ONE, "container c0 asks for 2 devices, its entry (number 1) has 1" },
		{ "1", TWO, "container c0 asks for 1 devices, its entry (number 1) has 2" },
		{ "12", TWO ONE,
		  "container c0 asks for 1 devices, its entry (number 1) has 2 | container c1 asks for 2 "
		  "devices, its entry (number 2) has 1" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		check(rows[i].asks, rows[i].text, rows[i].want);
}

static void no_such_container(void **state)
{
	hm_auto(pod_view) *pod = make_pod("10");
	hm_auto_pod_devices devices = { 0 };
	struct hm_err e;
	size_t entry;

	(void)state;
	assert_int_equal(devices_text_parse(ONE, &devices, &e), 0);
	assert_int_equal(entry_map_find(pod, &devices, "other", &entry, &e), -HM_ENOTFOUND);
	assert_string_equal(e.msg, "the pod has no container \"other\"");
	assert_int_equal(entry_map_find(pod, &devices, "c1", &entry, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "container c1 asks for no device");
}

static void cards(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "A,NVIDIA,3000,30:;", "A 3145728000 30" },
		{ "A,NVIDIA,1,0:;", "A 1048576 100" }, /* 0 percent: no limit */
		{ "A,NVIDIA,1,100:;", "A 1048576 100" },
		{ "A,NVIDIA,1,230:;", "A 1048576 100" },
		{ "A,NVIDIA,8000,50:B,NVIDIA,4000,20:;", "A 8388608000 50 B 4194304000 20" },
		{ "A,NVIDIA,1000,10:A,NVIDIA,1000,10:;", "A 2097152000 20" },
		{ "A,NVIDIA,1,80:A,NVIDIA,1,70:;", "A 2097152 100" },
		{ "A,NVIDIA,1,10:A,NVIDIA,1,0:;", "A 2097152 100" },
		{ "A,NVIDIA,268435455,1:;", "A 281474975662080 1" }, /* just what the region counts */
		{ "A,NVIDIA,268435456,1:;", "268435456 MiB of A are more than can be counted" },
		{ "A,NVIDIA,2147483647,1:;", "2147483647 MiB of A are more than can be counted" },
		{ "A,NVIDIA,200000000,1:A,NVIDIA,200000000,1:;", "200000000 MiB of A are more than can be counted" },
		{ "A,NVIDIA,0,30:;", "0 MiB of A: a limit begins at 1 MiB" },
		{ "A,NVIDIA,-5,30:;", "-5 MiB of A: a limit begins at 1 MiB" },
		{ "A,NVIDIA,5,-1:;", "-1 percent of A" },
		{ "A,MLU,5,1:;", "A is of type \"MLU\"; this node has NVIDIA" },
		{ "A,,5,1:;", "A is of type \"\"; this node has NVIDIA" },
		{ ",NVIDIA,5,1:;", "a device without a UUID" },
		{ "0,NVIDIA,1,1:1,NVIDIA,1,1:2,NVIDIA,1,1:3,NVIDIA,1,1:4,NVIDIA,1,1:5,NVIDIA,1,1:6,NVIDIA,1,1:"
		  "7,NVIDIA,1,1:8,NVIDIA,1,1:9,NVIDIA,1,1:a,NVIDIA,1,1:b,NVIDIA,1,1:c,NVIDIA,1,1:d,NVIDIA,1,1:"
		  "e,NVIDIA,1,1:f,NVIDIA,1,1:g,NVIDIA,1,1:;",
		  "more than 16 cards" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_pod_devices devices = { 0 };
		struct claim_card got[HM_MAX_CARDS];
		char text[1024] = "";
		size_t count, n = 0;
		struct hm_err e;

		assert_int_equal(devices_text_parse(rows[i].text, &devices, &e), 0);
		if (entry_map_cards(&devices, 0, got, &count, &e) < 0) {
			assert_string_equal(e.msg, rows[i].want);
			continue;
		}
		for (size_t k = 0; k < count; k++)
			n += hm_fmt(text + n, sizeof text - n, "%s%s %llu %u", k > 0 ? " " : "", got[k].uuid,
				    (unsigned long long)got[k].memory_bytes, got[k].cores);
		assert_string_equal(text, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_that_fit),
		cmocka_unit_test(entries_that_do_not_fit),
		cmocka_unit_test(no_such_container),
		cmocka_unit_test(cards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
