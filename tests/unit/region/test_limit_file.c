#include "region/limit_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define UUID "GPU-4b3c1a2d-0000-1111-2222-333344445555"
#define CARD "gpu=" UUID " memory=1000 cores=25\n"

static void reads_a_whole_file(void **state)
{
	static const char text[] = "hami-vgpu-limits 1\n" CARD "gpu=GPU-b memory=281474976710655 cores=100\n"
				   "priority=0\npolicy=force\noversubscribe=1\nend\n";
	struct hm_err e;
	struct limits l;

	(void)state;
	assert_int_equal(limits_parse(text, sizeof text - 1, &l, &e), 0);
	assert_int_equal(l.count, 2);
	assert_string_equal(l.cards[0].uuid, UUID);
	assert_int_equal(l.cards[0].memory_bytes, 1000);
	assert_int_equal(l.cards[0].cores, 25);
	assert_int_equal(l.cards[1].memory_bytes, 281474976710655U);
	assert_int_equal(l.cards[1].cores, 100);
	assert_int_equal(l.priority, 0);
	assert_int_equal(l.policy, LIMIT_POLICY_FORCE);
	assert_true(l.oversubscribe);
}

static void has_defaults(void **state)
{
	static const char text[] = "hami-vgpu-limits 1\n" CARD "end\n";
	struct hm_err e;
	struct limits l;

	(void)state;
	assert_int_equal(limits_parse(text, sizeof text - 1, &l, &e), 0);
	assert_int_equal(l.priority, 1);
	assert_int_equal(l.policy, LIMIT_POLICY_DEFAULT);
	assert_false(l.oversubscribe);
}

static const struct bad {
	const char *text;
	int code;
	const char *says; /* a part of the message */
} bad[] = {
	{ "", HM_EPROTO, "no line" },
	{ "hami-vgpu-limits 1", HM_EPROTO, "no line" },
	{ "hami-vgpu-limits 2\n" CARD "end\n", HM_EUNSUPPORTED, "version 2" },
	{ "hami-vgpu-limits x\n" CARD "end\n", HM_EPROTO, "line 1" },
	{ "limits 1\n" CARD "end\n", HM_EPROTO, "line 1" },
	{ "hami-vgpu-limits 1\n" CARD, HM_EPROTO, "cut" },
	{ "hami-vgpu-limits 1\n" CARD "end", HM_EPROTO, "cut" },
	{ "hami-vgpu-limits 1\n" CARD "en\n", HM_EPROTO, "line 3" },
	{ "hami-vgpu-limits 1\n" CARD "end\nx", HM_EPROTO, "behind" },
	{ "hami-vgpu-limits 1\nend\n", HM_EPROTO, "no gpu" },
	{ "hami-vgpu-limits 1\n" CARD CARD "end\n", HM_EPROTO, "twice" },
	{ "hami-vgpu-limits 1\n" CARD "priority=1\npriority=1\nend\n", HM_EPROTO, "twice" },
	{ "hami-vgpu-limits 1\n" CARD "priority=2\nend\n", HM_EPROTO, "priority=2" },
	{ "hami-vgpu-limits 1\n" CARD "priority=\nend\n", HM_EPROTO, "priority=" },
	{ "hami-vgpu-limits 1\n" CARD "policy=never\nend\n", HM_EPROTO, "policy=never" },
	{ "hami-vgpu-limits 1\n" CARD "oversubscribe=yes\nend\n", HM_EPROTO, "oversubscribe" },
	{ "hami-vgpu-limits 1\n" CARD "colour=red\nend\n", HM_EPROTO, "unknown key: \"colour\"" },
	{ "hami-vgpu-limits 1\ngpu=A memory=0 cores=1\nend\n", HM_EPROTO, "begin at 1" },
	{ "hami-vgpu-limits 1\ngpu=A memory=1 cores=0\nend\n", HM_EPROTO, "begin at 1" },
	{ "hami-vgpu-limits 1\ngpu=A memory=1 cores=101\nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu=A memory=-1 cores=1\nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu=A memory=1g cores=1\nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu=A memory=281474976710656 cores=1\nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu=A memory=99999999999999999999 cores=1\nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu=A  memory=1 cores=1\nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu=A memory=1 cores=1 \nend\n", HM_EPROTO, "line 2" },
	{ "hami-vgpu-limits 1\ngpu= memory=1 cores=1\nend\n", HM_EPROTO, "uuid" },
	{ "hami-vgpu-limits 1\ngpu=A\x01 memory=1 cores=1\nend\n", HM_EPROTO, "uuid" },
};

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct hm_err e = { 0 };
		struct limits l;
		int r = limits_parse(bad[i].text, strlen(bad[i].text), &l, &e);

		if (r != -bad[i].code || strstr(e.msg, bad[i].says) == NULL)
			fail_msg("case %zu: %d, \"%s\"", i, r, e.msg);
	}
}

static void refuses_every_cut(void **state)
{
	static const char text[] = "hami-vgpu-limits 1\n" CARD "priority=0\nend\n";
	struct limits l;

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++)
		assert_true(limits_parse(text, n, &l, NULL) < 0);
}

static void refuses_more_cards_than_fit(void **state)
{
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof text, "hami-vgpu-limits 1\n");
	struct limits l;

	(void)state;
	for (int i = 0; i <= HM_MAX_CARDS; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "gpu=GPU-%d memory=1 cores=1\n", i);
	n += (size_t)snprintf(text + n, sizeof text - n, "end\n");
	assert_int_equal(limits_parse(text, n, &l, NULL), -HM_EPROTO);
}

static void writes_what_it_reads(void **state)
{
	struct limits l = { .count = HM_MAX_CARDS, .policy = LIMIT_POLICY_DISABLE, .oversubscribe = true }, back;
	char text[LIMIT_FILE_MAX_BYTES];
	size_t n;

	(void)state;
	for (unsigned i = 0; i < HM_MAX_CARDS; i++) {
		memset(l.cards[i].uuid, 'a' + (int)i, HM_UUID_BYTES - 1);
		l.cards[i].memory_bytes = 281474976710655U;
		l.cards[i].cores = 100;
	}
	n = limits_write(&l, text, sizeof text);
	assert_true(n > 0);
	assert_int_equal(limits_parse(text, n, &back, NULL), 0);
	assert_int_equal(back.count, l.count);
	for (unsigned i = 0; i < HM_MAX_CARDS; i++) {
		assert_string_equal(back.cards[i].uuid, l.cards[i].uuid);
		assert_int_equal(back.cards[i].memory_bytes, l.cards[i].memory_bytes);
		assert_int_equal(back.cards[i].cores, l.cards[i].cores);
	}
	assert_int_equal(back.priority, l.priority);
	assert_int_equal(back.policy, l.policy);
	assert_int_equal(back.oversubscribe, l.oversubscribe);
	for (size_t cap = 0; cap <= n; cap++)
		assert_int_equal(limits_write(&l, text, cap), 0);
	assert_int_equal(limits_write(&l, text, n + 1), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_whole_file),
		cmocka_unit_test(has_defaults),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_every_cut),
		cmocka_unit_test(refuses_more_cards_than_fit),
		cmocka_unit_test(writes_what_it_reads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
