#include "agent/cards/card_health.h"

#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/model/make_inventory.h"

enum { RECOVERY_MS = 60000, STEP_MS = 1000 };

static struct card_health *health;
static struct inventory *cards;
static struct card_now now;
static unsigned worse;
static char turns[512]; /* "0- 0+ ": the card's last digit, sick or well */

static void on_turned(void *arg, const struct card_state *s)
{
	size_t n = strlen(turns);

	assert_ptr_equal(arg, turns);
	snprintf(turns + n, sizeof turns - n, "%c%c ", s->uuid[strlen(s->uuid) - 1], s->sick ? '-' : '+');
}

static void on_worse(void *arg, const struct card_state *s)
{
	assert_ptr_equal(arg, turns);
	assert_true(s->sick && s->needs_reset);
	worse++;
}

static void make(const char *checks, const char *disable, const char *enable, uint64_t recovery_ms)
{
	const struct card_listener listener = { on_turned, on_worse, turns };
	struct health_policy policy;
	struct hm_err e;

	card_health_free(health);
	health_policy_init(&policy, checks, disable, enable, NULL);
	assert_int_equal(card_health_new(&policy, recovery_ms, &listener, &health, &e), 0);
	card_health_scanned(health, cards, now);
	turns[0] = '\0';
}

static int setup(void **state)
{
	(void)state;
	now = (struct card_now) { 5000, 1800000000000 };
	cards = make_inventory(3, 1000);
	make(NULL, NULL, NULL, RECOVERY_MS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	card_health_free(HM_STEAL(health));
	inventory_free(HM_STEAL(cards));
	return 0;
}

static const struct gpu_vitals well = { .answer = GPU_ANSWERS, .action = GPU_ACTION_UNKNOWN };
static const struct gpu_vitals told_well = { .answer = GPU_ANSWERS, .action = NVML_GPU_RECOVERY_ACTION_NONE };
static const struct gpu_vitals lost = { .answer = GPU_LOST,
					.action = GPU_ACTION_UNKNOWN,
					.why = "NVML says it is lost" };

static void xid(unsigned number, const struct gpu_vitals *v)
{
	const struct gpu_event e = { .kind = GPU_EVENT_XID, .xid = number, .count = 2 };

	card_health_note(health, cards->cards[0].uuid, &e, 1, v, true, now);
}

static void ask(const struct gpu_vitals *v)
{
	card_health_note(health, cards->cards[0].uuid, NULL, 0, v, true, now);
}

/* So long it is asked each second, and is well. */
static void well_for(uint64_t ms, const struct gpu_vitals *v)
{
	for (uint64_t t = 0; t <= ms; t += STEP_MS) {
		ask(v);
		now.ms += STEP_MS;
		now.wall_ms += STEP_MS;
	}
}

static const struct card_state *first(void)
{
	return card_health_at(health, 0);
}

static bool is_sick(void)
{
	return card_health_is_sick(health, cards->cards[0].uuid);
}

static void an_application_error_changes_nothing(void **state)
{
	static const unsigned harmless[] = { 8, 13, 31, 43, 45, 63, 68, 94, 109 };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(harmless); i++)
		xid(harmless[i], &well);
	assert_string_equal(turns, "");
	assert_int_equal(first()->xids[1].xid, 13);
	assert_int_equal(first()->xids[1].count, 2);
}

static void a_card_error_ends_when_it_has_been_well_long_enough(void **state)
{
	(void)state;
	xid(74, &well);
	assert_string_equal(turns, "0- ");
	assert_false(card_health_is_sick(health, cards->cards[1].uuid));
	assert_string_equal(first()->why, "Xid 74: NVLink error");
	assert_int_equal(first()->since_wall_ms, 1800000000000);
	now.ms += STEP_MS;
	well_for(RECOVERY_MS - 2 * STEP_MS, &well);
	assert_true(is_sick());
	ask(&well);
	assert_string_equal(turns, "0- 0+ ");
	assert_int_equal(first()->turned_sick, 1);
	assert_int_equal(first()->recovered, 1);
}

static void a_new_error_begins_the_wait_anew(void **state)
{
	(void)state;
	xid(74, &well);
	well_for(RECOVERY_MS - 10000, &well);
	xid(92, &well);
	well_for(RECOVERY_MS - 2 * STEP_MS, &well);
	assert_true(is_sick());
	well_for(3 * STEP_MS, &well);
	assert_false(is_sick());
	assert_string_equal(turns, "0- 0+ ");
}

static void a_gap_in_the_asking_begins_the_wait_anew(void **state)
{
	(void)state;
	xid(74, &well);
	well_for(2000, &well);
	now.ms += 10 * RECOVERY_MS;
	ask(&well);
	assert_true(is_sick());
	now.ms += STEP_MS;
	well_for(RECOVERY_MS, &well);
	assert_false(is_sick());
}

/* An old driver does not tell that it wants a reset: that the card was away is seen, or nothing is. */
static void a_reset_must_be_shown(void **state)
{
	struct gpu_vitals v = well;

	(void)state;
	xid(79, &well);
	well_for(10 * RECOVERY_MS, &well);
	assert_true(is_sick());
	ask(&lost);
	now.ms += STEP_MS;
	well_for(RECOVERY_MS, &well);
	assert_false(is_sick());
	assert_string_equal(turns, "0- 0+ ");

	/* The driver was loaded anew. */
	xid(95, &well);
	well_for(10 * RECOVERY_MS, &well);
	assert_true(is_sick());
	card_health_scanned(health, NULL, now);
	card_health_scanned(health, cards, now);
	well_for(RECOVERY_MS, &well);
	assert_false(is_sick());

	/* The count of errors fell. */
	v.counts_ecc = true;
	v.uncorrected = 3;
	ask(&v);
	xid(48, &v);
	well_for(10 * RECOVERY_MS, &v);
	assert_true(is_sick());
	v.uncorrected = 0;
	well_for(RECOVERY_MS, &v);
	assert_false(is_sick());

	/* The card was away, and a row still waits: the reset did not come to its end. */
	xid(64, &lost);
	v.rows_pending = true;
	well_for(2 * RECOVERY_MS, &v);
	assert_true(is_sick());
	v.rows_pending = false;
	v.rows_failed = true;
	well_for(2 * RECOVERY_MS, &v);
	assert_true(is_sick());
	v.rows_failed = false;
	well_for(RECOVERY_MS, &v);
	assert_false(is_sick());
}

static void what_was_away_before_the_error_says_nothing_of_it(void **state)
{
	(void)state;
	ask(&lost);
	ask(&well);
	xid(79, &well);
	assert_non_null(strstr(first()->why, "Xid 79"));
	well_for(10 * RECOVERY_MS, &well);
	assert_true(is_sick());
}

static void a_driver_that_tells_is_believed(void **state)
{
	struct gpu_vitals v = told_well;
	const struct gpu_event double_bit = { .kind = GPU_EVENT_DOUBLE_BIT, .count = 1 };

	(void)state;
	v.action = NVML_GPU_RECOVERY_ACTION_GPU_RESET;
	ask(&v);
	assert_string_equal(turns, "0- ");
	assert_string_equal(first()->why, "the driver asks for: GPU reset");
	assert_true(first()->needs_reset);
	well_for(10 * RECOVERY_MS, &v);
	assert_true(is_sick());
	v.action = NVML_GPU_RECOVERY_ACTION_NONE;
	v.rows_pending = true;
	well_for(RECOVERY_MS, &v);
	assert_string_equal(turns, "0- 0+ ");
	/* Contained: a program's. */
	card_health_note(health, cards->cards[0].uuid, &double_bit, 1, &told_well, true, now);
	assert_false(is_sick());
	card_health_note(health, cards->cards[0].uuid, &double_bit, 1, &well, true, now);
	assert_string_equal(first()->why, "uncorrectable ECC error");
}

static void without_events_the_count_of_errors_tells(void **state)
{
	struct gpu_vitals v = well;

	(void)state;
	v.counts_ecc = true;
	v.uncorrected = 7; /* from before */
	card_health_note(health, cards->cards[0].uuid, NULL, 0, &v, false, now);
	card_health_note(health, cards->cards[0].uuid, NULL, 0, &v, false, now);
	assert_false(is_sick());
	v.uncorrected = 8;
	card_health_note(health, cards->cards[0].uuid, NULL, 0, &v, true, now);
	assert_false(is_sick());
	v.uncorrected = 9;
	card_health_note(health, cards->cards[0].uuid, NULL, 0, &v, false, now);
	assert_true(is_sick());
}

static void a_card_that_is_away_is_sick(void **state)
{
	hm_auto(inventory) *two = make_inventory(3, 1000);
	struct gpu_vitals errs = { .answer = GPU_ERRS, .action = GPU_ACTION_UNKNOWN, .why = "Unknown Error (999)" };

	(void)state;
	two->count = 2;
	card_health_scanned(health, two, now);
	assert_string_equal(turns, "2- ");
	card_health_scanned(health, cards, now);
	assert_true(card_health_is_sick(health, cards->cards[2].uuid));
	ask(&errs);
	assert_string_equal(turns, "2- 0- ");
	assert_string_equal(first()->why, "it errs: Unknown Error (999)");
	ask(&errs);
	assert_int_equal(first()->turned_sick, 1);
	now.ms += STEP_MS;
	well_for(RECOVERY_MS, &well);
	assert_false(is_sick());
}

static void a_driver_that_is_gone_makes_nobody_sick(void **state)
{
	struct gpu_vitals gone = { .answer = GPU_DRIVER_GONE, .action = GPU_ACTION_UNKNOWN };

	(void)state;
	ask(&gone);
	card_health_scanned(health, NULL, now);
	card_health_scanned(health, cards, now);
	assert_string_equal(turns, "");
}

static void what_is_disabled_marks_nothing(void **state)
{
	const struct gpu_event double_bit = { .kind = GPU_EVENT_DOUBLE_BIT, .count = 1 };
	hm_auto(inventory) *none = make_inventory(0, 0);

	(void)state;
	make("all", "all", "79", RECOVERY_MS);
	xid(48, &lost);
	card_health_note(health, cards->cards[0].uuid, &double_bit, 1, &well, true, now);
	card_health_scanned(health, none, now);
	assert_string_equal(turns, "");
	xid(79, &well);
	assert_string_equal(turns, "0- ");
	make("all", "", "31", RECOVERY_MS);
	xid(31, &well);
	assert_string_equal(turns, "0- ");
	now.ms += STEP_MS;
	well_for(RECOVERY_MS, &well);
	assert_false(is_sick());
}

static void a_graver_cause_is_told(void **state)
{
	unsigned before = worse;

	(void)state;
	xid(74, &well);
	assert_int_equal(worse, before);
	xid(79, &well);
	xid(79, &well);
	assert_int_equal(worse, before + 1);
	assert_int_equal(first()->xid, 79);
	assert_string_equal(turns, "0- ");
}

static void what_was_known_before_is_recalled(void **state)
{
	const struct card_listener listener = { on_turned, on_worse, turns };
	struct card_state sick = { .needs_reset = true,
				   .xid = 95,
				   .since_wall_ms = 77,
				   .why = "Xid 95: bad",
				   .ecc_known = true,
				   .uncorrected = 4 };
	struct gpu_vitals v = well;
	struct health_policy policy;
	struct hm_err e;

	(void)state;
	card_health_free(HM_STEAL(health));
	health_policy_init(&policy, NULL, NULL, NULL, NULL);
	assert_int_equal(card_health_new(&policy, RECOVERY_MS, &listener, &health, &e), 0);
	snprintf(sick.uuid, sizeof sick.uuid, "GPU-gone");
	card_health_recall(health, &sick);
	snprintf(sick.uuid, sizeof sick.uuid, "%s", cards->cards[0].uuid);
	card_health_recall(health, &sick);
	card_health_scanned(health, NULL, now); /* the driver comes later than we */
	card_health_scanned(health, cards, now);
	assert_int_equal(card_health_count(health), 3);
	assert_true(is_sick());
	assert_string_equal(first()->why, "Xid 95: bad");
	assert_int_equal(first()->since_wall_ms, 77);
	assert_string_equal(turns, "");
	/* The driver that we waited for was loaded: as good as a reset. */
	v.counts_ecc = true;
	well_for(RECOVERY_MS, &v);
	assert_string_equal(turns, "0+ ");
}

static void zero_is_never(void **state)
{
	(void)state;
	make(NULL, NULL, NULL, 0);
	xid(74, &well);
	well_for(100 * STEP_MS, &told_well);
	assert_true(is_sick());
}

static void the_annotation_names_the_sick(void **state)
{
	hm_auto_str none = { 0 }, some = { 0 };
	char want[512];

	(void)state;
	card_health_json(health, &none);
	assert_string_equal(str_text(&none), "[]");
	xid(79, &well);
	card_health_note(health, cards->cards[2].uuid, NULL, 0, &lost, true, now);
	card_health_json(health, &some);
	snprintf(want, sizeof want,
		 "[{\"id\":\"%s\",\"reason\":\"Xid 79: the GPU has fallen off the bus\",\"xid\":79,"
		 "\"needsReset\":true,\"since\":\"2027-01-15T08:00:00Z\"},"
		 "{\"id\":\"%s\",\"reason\":\"lost: NVML says it is lost\",\"needsReset\":false,"
		 "\"since\":\"2027-01-15T08:00:00Z\"}]",
		 cards->cards[0].uuid, cards->cards[2].uuid);
	assert_string_equal(str_text(&some), want);
}

/* A container may make any Xid of an application's. */
static void many_different_xids_find_room(void **state)
{
	uint64_t sum = 0;

	(void)state;
	make("all", "all", "79", RECOVERY_MS);
	for (unsigned i = 100; i < 200; i++)
		xid(i, &well);
	for (size_t i = 0; i < CARD_XIDS; i++)
		sum += first()->xids[i].count;
	assert_int_equal(sum, 200);
	assert_int_equal(first()->xids[CARD_XIDS - 1].xid, 0);
	assert_int_equal(first()->xids[CARD_XIDS - 2].count, 2);
}

static void cards_come_and_go(void **state)
{
	hm_auto(inventory) *full = make_inventory(HM_MAX_CARDS, 1000), *other = make_inventory(HM_MAX_CARDS, 1000);

	(void)state;
	for (size_t i = 0; i < other->count; i++)
		other->cards[i].uuid[4] = 'f';
	card_health_scanned(health, full, now);
	card_health_scanned(health, other, now);
	assert_int_equal(card_health_count(health), HM_MAX_CARDS);
	for (size_t i = 0; i < other->count; i++)
		assert_false(card_health_is_sick(health, other->cards[i].uuid));
	xid(79, &well); /* of a card that is known no more */
	assert_null(strstr(turns, "0- 0- "));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_application_error_changes_nothing),
		TEST(a_card_error_ends_when_it_has_been_well_long_enough),
		TEST(a_new_error_begins_the_wait_anew),
		TEST(a_gap_in_the_asking_begins_the_wait_anew),
		TEST(a_reset_must_be_shown),
		TEST(what_was_away_before_the_error_says_nothing_of_it),
		TEST(a_driver_that_tells_is_believed),
		TEST(without_events_the_count_of_errors_tells),
		TEST(a_card_that_is_away_is_sick),
		TEST(a_driver_that_is_gone_makes_nobody_sick),
		TEST(what_is_disabled_marks_nothing),
		TEST(a_graver_cause_is_told),
		TEST(what_was_known_before_is_recalled),
		TEST(zero_is_never),
		TEST(the_annotation_names_the_sick),
		TEST(many_different_xids_find_room),
		TEST(cards_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
