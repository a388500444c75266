#include "model/claim_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"

static const char sample[] = "hami-vgpu-claim 2\n"
			     "number=17\n"
			     "state=active\n"
			     "pod_uid=6c1f2f0e-8a53-4d9c-9a43-0c5a1b6f7e11\n"
			     "pod_namespace=team-a\n"
			     "pod_name=train\\n\\x1b[31m\\\"x\\\\\n"
			     "container=main\n"
			     "resource=hami.com/vgpu\n"
			     "cdi=hami.io/vgpu=v.17\n"
			     "created_ms=1764447654123\n"
			     "device=GPU-a::4\n"
			     "device=GPU-b::0\n"
			     "entry=3\n"
			     "priority=0\n"
			     "policy=force\n"
			     "oversubscribe=1\n"
			     "uncontrolled=1\n"
			     "signature=v1.k.abc\n"
			     "card=GPU-a memory=4026531840 cores=25 slot=4\n"
			     "card=GPU-b memory=18446744073709551615 cores=100 slot=999 mig=MIG-7 gi=3 ci=1\n"
			     "end\n";

/* As version 1 wrote it. */
static const char old_sample[] = "hami-vgpu-claim 1\nnumber=17\nstate=active\npod_uid=u\npod_namespace=\npod_name=\n"
				 "container=main\nresource=hami.com/vgpu\ncdi=\ncreated_ms=1\nentry=0\n"
				 "card=GPU-a memory=1 cores=25 slot=4\nend\n";

static void check_sample(const struct claim *c)
{
	assert_int_equal(c->number, 17);
	assert_int_equal(c->state, CLAIM_ACTIVE);
	assert_string_equal(c->pod_uid, "6c1f2f0e-8a53-4d9c-9a43-0c5a1b6f7e11");
	assert_string_equal(c->pod_namespace, "team-a");
	assert_string_equal(c->pod_name, "train\n\x1b[31m\"x\\");
	assert_string_equal(c->container, "main");
	assert_string_equal(c->resource, "hami.com/vgpu");
	assert_string_equal(c->cdi, "hami.io/vgpu=v.17");
	assert_int_equal(c->created_ms, 1764447654123);
	assert_int_equal(c->entry, 3);
	assert_int_equal(c->priority, 0);
	assert_int_equal(c->policy, CLAIM_POLICY_FORCE);
	assert_true(c->oversubscribe);
	assert_true(c->uncontrolled);
	assert_string_equal(c->signature, "v1.k.abc");
	assert_string_equal(c->cards[0].mig, "");
	assert_string_equal(c->cards[1].mig, "MIG-7");
	assert_int_equal(c->cards[1].gi, 3);
	assert_int_equal(c->cards[1].ci, 1);
	assert_int_equal(c->device_count, 2);
	assert_string_equal(c->devices[0], "GPU-a::4");
	assert_string_equal(c->devices[1], "GPU-b::0");
	assert_int_equal(c->card_count, 2);
	assert_string_equal(c->cards[0].uuid, "GPU-a");
	assert_int_equal(c->cards[0].memory_bytes, 4026531840);
	assert_int_equal(c->cards[0].cores, 25);
	assert_int_equal(c->cards[0].slot, 4);
	assert_string_equal(c->cards[1].uuid, "GPU-b");
	assert_true(c->cards[1].memory_bytes == UINT64_MAX);
	assert_int_equal(c->cards[1].cores, 100);
	assert_int_equal(c->cards[1].slot, 999);
}

static void test_read_and_write(void **state)
{
	struct claim c;
	struct hm_err e;
	hm_auto_str text = { 0 };

	(void)state;
	if (claim_parse(sample, sizeof sample - 1, &c, &e) < 0)
		fail_msg("%s", e.msg);
	check_sample(&c);
	claim_write(&c, &text);
	assert_string_equal(str_text(&text), sample);
	claim_fini(&c);
	claim_fini(&c); /* twice is harmless */
}

static void test_version_1(void **state)
{
	hm_auto_str with = { 0 };
	struct claim c;
	struct hm_err e;

	(void)state;
	if (claim_parse(old_sample, sizeof old_sample - 1, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(c.priority, 1);
	assert_int_equal(c.policy, CLAIM_POLICY_DEFAULT);
	assert_false(c.oversubscribe);
	assert_false(c.uncontrolled);
	assert_string_equal(c.signature, "");
	claim_fini(&c);
	/* The new keys are none of version 1's, and version 2 needs them. */
	str_add_n(&with, old_sample, sizeof old_sample - 1 - strlen("end\n"));
	str_add(&with, "priority=1\nend\n");
	assert_int_equal(claim_parse(str_text(&with), with.n, &c, &e), -HM_EPROTO);
	assert_non_null(strstr(e.msg, "line 13: unknown key \"priority\""));
	with.p[strlen("hami-vgpu-claim ")] = '2';
	assert_int_equal(claim_parse(str_text(&with), with.n, &c, &e), -HM_EPROTO);
	assert_non_null(strstr(e.msg, "policy is missing"));
}

/* A file cut anywhere is refused, but for its last newline. */
static void test_cut(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof sample - 2; n++) {
		struct claim c;
		struct hm_err e;

		assert_int_equal(claim_parse(sample, n, &c, &e), -HM_EPROTO);
		assert_null(c.devices);
	}
}

/* The sample with one line replaced. */
static void test_bad_lines(void **state)
{
	static const struct {
		const char *line, *by;
		int code;
		const char *says;
	} rows[] = {
		{ "hami-vgpu-claim 2", "hami-vgpu-claim 3", -HM_EUNSUPPORTED, "version 3" },
		{ "number=17", "number=-1", -HM_EPROTO, "line 2: number: not a number" },
		{ "number=17", "number=18446744073709551616", -HM_EPROTO, "line 2: number" },
		{ "state=active", "state=busy", -HM_EPROTO, "line 3: state: none of allocated" },
		{ "entry=3", "entry=4294967296", -HM_EPROTO, "line 13: entry" },
		{ "entry=3", "colour=red", -HM_EPROTO, "line 13: unknown key \"colour\"" },
		{ "container=main", "container=\\z", -HM_EPROTO, "line 7: container: bad escape" },
		{ "device=GPU-b::0",
		  "device="
		  "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
		  "9",
		  -HM_EPROTO, "line 12: device" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-a memory=1 cores=101 slot=4", -HM_EPROTO,
		  "line 19: card: not \"<uuid>" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-a memory=1 cores=1 slot=1000", -HM_EPROTO,
		  "line 19: card" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-a memory=1 cores=1 slot=1 x=1", -HM_EPROTO,
		  "line 19: card" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-a memory=1 cores=1 slot=1 mig=", -HM_EPROTO,
		  "line 19: card" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-a memory=1 cores=1 slot=1 mig=a b",
		  -HM_EPROTO, "line 19: card" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-a memory=1 cores=1 slot=1 mig=a gi=1",
		  -HM_EPROTO, "line 19: card" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4",
		  "card=GPU-b memory=1 cores=1 slot=1 mig=MIG-7 gi=3 ci=1", -HM_EPROTO,
		  "line 20: card: GPU-b stands twice" },
		{ "priority=0", "priority=2", -HM_EPROTO, "line 14: priority: not a number between 0 and 1" },
		{ "policy=force", "policy=off", -HM_EPROTO, "line 15: policy: none of default, force, disable" },
		{ "policy=force", "policy=forceforceforceforce", -HM_EPROTO, "line 15: policy: none of" },
		{ "oversubscribe=1", "oversubscribe=yes", -HM_EPROTO, "line 16: oversubscribe: not a number" },
		{ "uncontrolled=1", "uncontrolled=2", -HM_EPROTO, "line 17: uncontrolled: not a number" },
		{ "policy=force", "priority=0", -HM_EPROTO, "line 15: priority: stands twice" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card=GPU-b memory=1 cores=1 slot=1", -HM_EPROTO,
		  "GPU-b stands twice" },
		{ "card=GPU-a memory=4026531840 cores=25 slot=4", "card= memory=1 cores=1 slot=1", -HM_EPROTO,
		  "line 19: card" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const char *at = strstr(sample, rows[i].line);
		hm_auto_str text = { 0 };
		struct claim c;
		struct hm_err e = { 0 };
		int r;

		str_add_n(&text, sample, (size_t)(at - sample));
		str_add(&text, rows[i].by);
		str_add(&text, at + strlen(rows[i].line));
		r = claim_parse(str_text(&text), text.n, &c, &e);
		if (r != rows[i].code)
			fail_msg("%s: %d, not %d", rows[i].by, r, rows[i].code);
		if (strstr(e.msg, rows[i].says) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].by, e.msg, rows[i].says);
	}
}

static void test_too_much(void **state)
{
	hm_auto_str cards = { 0 };
	hm_auto_str devices = { 0 };
	struct claim c;
	struct hm_err e;

	(void)state;
	str_add(&cards, "hami-vgpu-claim 1\n");
	for (unsigned i = 0; i < HM_MAX_CARDS + 1; i++)
		str_addf(&cards, "card=GPU-%u memory=1 cores=1 slot=0\n", i);
	assert_int_equal(claim_parse(str_text(&cards), cards.n, &c, &e), -HM_ELIMIT);
	assert_non_null(strstr(e.msg, "line 18: card: more than 16 cards"));
	str_add(&devices, "hami-vgpu-claim 1\n");
	for (unsigned i = 0; i < CLAIM_MAX_DEVICES + 1; i++)
		str_add(&devices, "device=x\n");
	assert_int_equal(claim_parse(str_text(&devices), devices.n, &c, &e), -HM_ELIMIT);
	assert_null(c.devices);
}

static void test_state_names(void **state)
{
	(void)state;
	assert_string_equal(claim_state_name(CLAIM_ALLOCATED), "allocated");
	assert_string_equal(claim_state_name(CLAIM_ENDED), "ended");
	assert_string_equal(claim_state_name((enum claim_state)7), "unknown");
}

static int sweep_parse(void *arg)
{
	struct claim c;
	struct hm_err e;
	int r = claim_parse(sample, sizeof sample - 1, &c, &e);

	(void)arg;
	if (r == 0)
		claim_fini(&c);
	return r;
}

static void test_sweep(void **state)
{
	(void)state;
	sweep_check("claim_parse", sweep_parse, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_and_write),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_state_names),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
