#include "agent/cards/card_memory.h"

#include <stdio.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "unit/model/make_inventory.h"

static const struct card_now now = { 5000, 1800000000000 };
static const char text[] = "hami-vgpu-health 1\n"
			   "mark=boot 7\n"
			   "sick=GPU-00000000-0000-0000-0000-000000000000 reset=1 xid=79 since=1800000000000 ecc=3 "
			   "why=Xid 79: the GPU has fallen off the bus\n"
			   "sick=GPU-00000000-0000-0000-0000-000000000001 reset=0 xid=0 since=1800000000000 ecc=- "
			   "why=lost: two lines\n"
			   "end\n";

static void on_turned(void *arg, const struct card_state *s)
{
	(void)arg, (void)s;
}

static struct card_health *make(void)
{
	const struct card_listener listener = { on_turned, on_turned, NULL };
	struct card_health *h = NULL;
	struct health_policy policy;
	struct hm_err e;

	health_policy_init(&policy, NULL, NULL, NULL, NULL);
	assert_int_equal(card_health_new(&policy, 60000, &listener, &h, &e), 0);
	return h;
}

static void what_is_written(void **state)
{
	const struct gpu_event xid = { .kind = GPU_EVENT_XID, .xid = 79, .count = 1 };
	const struct gpu_vitals counts = { .answer = GPU_ANSWERS, .action = -1, .counts_ecc = true, .uncorrected = 3 };
	const struct gpu_vitals lost = { .answer = GPU_LOST, .action = -1, .why = "two\nlines" };
	hm_auto(inventory) *cards = make_inventory(3, 1000);
	hm_auto(card_health) *h = make();
	hm_auto_str out = { 0 };

	(void)state;
	card_health_scanned(h, cards, now);
	card_health_note(h, cards->cards[0].uuid, &xid, 1, &counts, true, now);
	card_health_note(h, cards->cards[1].uuid, NULL, 0, &lost, true, now);
	card_memory_text(h, "boot 7", &out);
	assert_string_equal(str_text(&out), text);
}

static void what_is_read(void **state)
{
	hm_auto(inventory) *cards = make_inventory(3, 1000);
	hm_auto(card_health) *h = make();
	hm_auto_str out = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(card_memory_parse(text, strlen(text), "boot 7", h, &e), 0);
	card_health_scanned(h, cards, now);
	assert_int_equal(card_health_count(h), 3);
	assert_true(card_health_is_sick(h, cards->cards[0].uuid) && card_health_is_sick(h, cards->cards[1].uuid));
	assert_false(card_health_is_sick(h, cards->cards[2].uuid));
	card_memory_text(h, "boot 7", &out);
	assert_string_equal(str_text(&out), text);
}

static void another_boot_means_nothing(void **state)
{
	static const char *const marks[] = { "boot 8", "boot", "other 7", "" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(marks); i++) {
		hm_auto(card_health) *h = make();
		struct hm_err e;

		assert_int_equal(card_memory_parse(text, strlen(text), marks[i], h, &e), 0);
		assert_int_equal(card_health_count(h), 0);
	}
}

/* Cut anywhere it is refused as a whole. */
static void what_is_broken_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"hami-vgpu-health 2\nmark=boot 7\nend\n",
		"hami-vgpu-health 1\nend\n",
		"hami-vgpu-health 1\nmark=boot 7\nsick=GPU-1 reset=2 xid=1 since=1 ecc=- why=x\nend\n",
		"hami-vgpu-health 1\nmark=boot 7\nsick= reset=1 xid=1 since=1 ecc=- why=x\nend\n",
		"hami-vgpu-health 1\nmark=boot 7\nsick=GPU-1 reset=1 xid=-1 since=1 ecc=- why=x\nend\n",
		"hami-vgpu-health 1\nmark=boot 7\nsick=GPU-1 reset=1 xid=1 since=1 ecc=x why=x\nend\n",
	};
	struct hm_err e;

	(void)state;
	for (size_t n = 0; n < strlen(text) - 1; n++) {
		hm_auto(card_health) *h = make();

		if (card_memory_parse(text, n, "boot 7", h, &e) == 0 && n != strlen(text) - 1)
			fail_msg("cut at %zu", n);
		assert_int_equal(card_health_count(h), 0);
	}
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		hm_auto(card_health) *h = make();

		if (card_memory_parse(bad[i], strlen(bad[i]), "boot 7", h, &e) != -HM_EPROTO)
			fail_msg("row %zu", i);
		assert_int_equal(card_health_count(h), 0);
	}
}

static void the_mark(void **state)
{
	char first[CARD_MARK_BYTES], second[CARD_MARK_BYTES];
	struct hm_err e;

	(void)state;
	card_memory_mark(temp_path("none"), temp_path("none"), first);
	assert_string_equal(first, "- -");
	assert_int_equal(file_mkdirs(temp_path("proc/sys/kernel/random"), 0755, &e), 0);
	assert_int_equal(file_mkdirs(temp_path("sys/module/nvidia"), 0755, &e), 0);
	temp_write("proc/sys/kernel/random/boot_id", "0cb1a3b4-2b4e-4f0e-9d3a-0e2c1f1a2b3c\n");
	card_memory_mark(temp_path("proc"), temp_path("sys"), first);
	assert_int_equal(strncmp(first, "0cb1a3b4-2b4e-4f0e-9d3a-0e2c1f1a2b3c ", 37), 0);
	assert_int_equal(file_mkdirs(temp_path("sys2/module/nvidia"), 0755, &e), 0);
	card_memory_mark(temp_path("proc"), temp_path("sys2"), second);
	assert_string_not_equal(first, second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written),
		cmocka_unit_test(what_is_read),
		cmocka_unit_test(another_boot_means_nothing),
		cmocka_unit_test(what_is_broken_is_refused),
		cmocka_unit_test_setup_teardown(the_mark, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
