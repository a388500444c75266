#include "sched/lead/election.h"

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"

static const struct election_rules rules = { 15000, 10000, 2000 };

static struct kube_lease lease_of(const char *holder, const char *renewed, const char *version)
{
	struct kube_lease lease = { .duration_s = 15, .transitions = 7 };

	snprintf(lease.holder, sizeof lease.holder, "%s", holder);
	snprintf(lease.renewed, sizeof lease.renewed, "%s", renewed);
	snprintf(lease.resource_version, sizeof lease.resource_version, "%s", version);
	return lease;
}

static void see(struct election *v, const char *holder, const char *renewed, const char *version, uint64_t now_ms)
{
	struct kube_lease lease = lease_of(holder, renewed, version);

	election_see(v, &lease, now_ms);
}

static void the_first_makes_it(void **state)
{
	struct kube_lease answer = lease_of("me", "t1", "5");
	struct kube_lease_write w;
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	assert_int_equal(election_next(&v, 1000), ELECTION_READ);
	election_see(&v, NULL, 1000);
	assert_int_equal(election_next(&v, 1000), ELECTION_MAKE);
	election_write(&v, ELECTION_MAKE, 99000, &w);
	assert_string_equal(w.holder, "me");
	assert_int_equal(w.duration_s, 15);
	assert_int_equal(w.transitions, 0);
	assert_int_equal(w.acquired_ms, 99000);
	assert_int_equal(w.renewed_ms, 99000);
	assert_false(election_leads(&v, 1000));
	election_won(&v, &answer, 1100);
	/* 10 s from the request, however late the answer was. */
	assert_true(election_leads(&v, 11099));
	assert_false(election_leads(&v, 11100));
	/* And the whole 15 s are nobody else's. */
	assert_int_equal(election_alone_ms(&v, 1100), 15000);
	assert_int_equal(election_alone_ms(&v, 11099), 5001);
	assert_int_equal(election_alone_ms(&v, 11100), 0);
	assert_int_equal(election_next(&v, 3000), ELECTION_RENEW);
	election_write(&v, ELECTION_RENEW, 99000, &w);
	assert_int_equal(w.acquired_ms, 0);
	assert_int_equal(w.transitions, 7);
}

static void anothers_is_waited_for(void **state)
{
	struct kube_lease_write w;
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	/* Its times are another clock's: a year ahead or behind is all the same. */
	see(&v, "you", "2036-01-01T00:00:00Z", "5", 1000);
	assert_int_equal(election_next(&v, 15999), ELECTION_WAIT);
	see(&v, "you", "2016-01-01T00:00:00Z", "6", 15999);
	assert_int_equal(election_next(&v, 16000), ELECTION_WAIT);
	assert_int_equal(election_next(&v, 30998), ELECTION_WAIT);
	/* A label of it changed: no renewal. */
	see(&v, "you", "2016-01-01T00:00:00Z", "7", 30000);
	assert_int_equal(election_next(&v, 30998), ELECTION_WAIT);
	assert_int_equal(election_next(&v, 30999), ELECTION_TAKE);
	assert_string_equal(v.seen.resource_version, "7");
	election_write(&v, ELECTION_TAKE, 1, &w);
	assert_int_equal(w.transitions, 8);
}

/* What the holder promised counts, not what we would have. */
static void the_holders_duration_counts(void **state)
{
	struct kube_lease lease = lease_of("you", "t", "5");
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	lease.duration_s = 60;
	election_see(&v, &lease, 1000);
	assert_int_equal(election_next(&v, 60999), ELECTION_WAIT);
	assert_int_equal(election_next(&v, 61000), ELECTION_TAKE);
	lease.duration_s = 0;
	election_see(&v, &lease, 2000);
	assert_int_equal(election_next(&v, 16999), ELECTION_WAIT);
	assert_int_equal(election_next(&v, 17000), ELECTION_TAKE);
}

static void left_it_is_taken_at_once(void **state)
{
	struct kube_lease_write w;
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	see(&v, "", "t", "5", 1000);
	assert_int_equal(election_next(&v, 1000), ELECTION_TAKE);
	election_write_release(&v, 5, &w);
	assert_string_equal(w.holder, "");
	assert_int_equal(w.duration_s, 1); /* 0 is refused by the API server */
}

/* What is no more another's, but was not left and has not lapsed. */
static void anothers_last_word_is_waited_for(void **state)
{
	struct kube_lease mine = lease_of("me", "t2", "6");
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	see(&v, "you", "t1", "5", 1000);
	election_see(&v, NULL, 3000); /* somebody has deleted it; it may have been renewed just before */
	election_won(&v, &mine, 3100);
	assert_false(election_leads(&v, 3100));
	assert_int_equal(election_next(&v, 5000), ELECTION_RENEW);
	election_won(&v, &mine, 17000);
	assert_false(election_leads(&v, 17999));
	assert_int_equal(election_alone_ms(&v, 17999), 0);
	assert_true(election_leads(&v, 18000));
	/* Left by its holder: there is none. */
	election_init(&v, &rules, "me");
	see(&v, "you", "t1", "5", 1000);
	see(&v, "", "t1", "6", 2000);
	election_won(&v, &mine, 2100);
	assert_true(election_leads(&v, 2100));
	/* By a program that knows nothing of ours. */
	election_init_follow(&v, &rules, "me");
	see(&v, "you_x", "t1", "5", 1000);
	see(&v, "", "t1", "6", 2000);
	see(&v, "me_x", "t2", "7", 2100);
	election_follow(&v, UINT64_MAX);
	assert_false(election_leads(&v, 2100));
	see(&v, "me_x", "t3", "8", 15999);
	election_follow(&v, UINT64_MAX);
	assert_false(election_leads(&v, 15999));
	assert_true(election_leads(&v, 16000));
	/* It was ours before: nothing to wait for. */
	see(&v, "", "t4", "9", 17000);
	see(&v, "me_y", "t5", "10", 17100);
	election_follow(&v, UINT64_MAX);
	assert_true(election_leads(&v, 17100));
}

/* A former process of ours may have sent something just before it died, and its kube-scheduler goes on. */
static void a_former_process_is_waited_for(void **state)
{
	static const struct {
		const char *first;
		uint32_t duration_s;
		uint64_t from_ms;
	} cases[] = {
		{ "me_x", 15, 16000 },
		{ "", 1, 16000 },
		{ "me_x", 60, 61000 },
		{ "me_x", 0, 16000 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct kube_lease lease = lease_of(cases[i].first, "t1", "5");
		struct election v;

		lease.duration_s = cases[i].duration_s;
		election_init_follow(&v, &rules, "me");
		election_see(&v, &lease, 1000);
		election_follow(&v, UINT64_MAX);
		assert_false(election_leads(&v, 1000));
		see(&v, "me_x", "t2", "6", cases[i].from_ms - 1);
		election_follow(&v, UINT64_MAX);
		assert_false(election_leads(&v, cases[i].from_ms - 1));
		assert_true(election_leads(&v, cases[i].from_ms));
	}
}

/* The watch broke, and a list came after it: of renewals in between nobody tells. */
static void what_a_list_leaves_out_is_waited_for(void **state)
{
	struct kube_lease back = lease_of("me_x", "t5", "9");
	struct election v;

	(void)state;
	election_init_follow(&v, &rules, "me");
	see(&v, "you_x", "t1", "5", 1000);
	election_be_blind(&v, true);
	see(&v, "me_x", "t3", "8", 15000);
	election_be_blind(&v, false);
	see(&v, "me_x", "t4", "9", 29999);
	election_follow(&v, UINT64_MAX);
	assert_false(election_leads(&v, 29999));
	assert_true(election_leads(&v, 30000));
	/* Ours, then another's, then ours again: the transitions say so. */
	election_be_blind(&v, true);
	see(&v, "me_x", "t4", "9", 31000);
	election_follow(&v, UINT64_MAX);
	assert_true(election_leads(&v, 31000));
	back.transitions = 9;
	election_see(&v, &back, 32000);
	election_follow(&v, UINT64_MAX);
	assert_false(election_leads(&v, 32000));
	assert_int_equal(v.from_ms, 47000);
}

/* Told late: what counts is when it was renewed. */
static void followed_from_when_it_was_renewed(void **state)
{
	struct election v;

	(void)state;
	election_init_follow(&v, &rules, "me");
	election_see(&v, NULL, 1000);
	see(&v, "me_x", "t1", "5", 5000);
	election_follow(&v, 2000);
	assert_true(election_leads(&v, 11999));
	assert_false(election_leads(&v, 12000));
	assert_int_equal(election_alone_ms(&v, 11999), 5001);
	election_follow(&v, 9000); /* in our future: then when we saw it */
	assert_true(election_leads(&v, 14999));
	assert_false(election_leads(&v, 15000));
}

static void what_was_lost_by_time_is_taken_again(void **state)
{
	struct kube_lease mine = lease_of("me", "t1", "5");
	struct kube_lease_write w;
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	election_won(&v, &mine, 1000);
	assert_int_equal(election_next(&v, 12000), ELECTION_TAKE);
	election_write(&v, ELECTION_TAKE, 1, &w);
	assert_int_equal(w.transitions, 7); /* the holder did not change */
}

static void another_holder_ends_it_at_once(void **state)
{
	struct kube_lease mine = lease_of("me", "t1", "5");
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	election_won(&v, &mine, 1000);
	see(&v, "you", "t2", "6", 2000);
	assert_false(election_leads(&v, 2000));
	assert_int_equal(election_next(&v, 16999), ELECTION_WAIT);
	election_won(&v, &mine, 3000);
	election_see(&v, NULL, 4000);
	assert_false(election_leads(&v, 4000));
	assert_int_equal(election_next(&v, 4000), ELECTION_MAKE);
}

static void a_conflict_only_asks_anew(void **state)
{
	struct kube_lease mine = lease_of("me", "t1", "5");
	struct election v;

	(void)state;
	election_init(&v, &rules, "me");
	election_won(&v, &mine, 1000);
	election_conflict(&v);
	assert_true(election_leads(&v, 2000));
	assert_int_equal(election_next(&v, 2000), ELECTION_READ);
	see(&v, "me", "t1", "6", 2000);
	assert_int_equal(election_next(&v, 2000), ELECTION_RENEW);
}

static void followed_is_exactly_our_host(void **state)
{
	static const struct {
		const char *holder;
		bool ours;
	} cases[] = {
		{ "node-1_7f0c", true }, { "node-1_", true },    { "node-10_7f0c", false },
		{ "node-1", false },     { "node_7f0c", false }, { "xnode-1_7f0c", false },
		{ "", false },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct election v;

		election_init_follow(&v, &rules, "node-1");
		election_see(&v, NULL, 900); /* a fresh cluster: nobody led */
		see(&v, cases[i].holder, "t", "5", 1000);
		election_follow(&v, UINT64_MAX);
		assert_int_equal(election_leads(&v, 1000), cases[i].ours);
		/* Two thirds of its duration. */
		assert_int_equal(election_leads(&v, 10999), cases[i].ours);
		assert_false(election_leads(&v, 11000));
	}
}

static void rules_that_do_not_fit(void **state)
{
	static const struct {
		struct election_rules rules;
		const char *msg;
	} cases[] = {
		{ { 1500, 1000, 100 }, "lease duration 1500 ms: whole seconds, 1 to 86400" },
		{ { 0, 0, 0 }, "lease duration 0 ms: whole seconds, 1 to 86400" },
		{ { 15000, 15000, 2000 },
		  "renew deadline 15000 ms is not shorter than the lease duration of 15000 ms" },
		{ { 15000, 10000, 10000 },
		  "retry period 10000 ms: at least 1, and shorter than the renew deadline of 10000 ms" },
		{ { 15000, 10000, 0 },
		  "retry period 0 ms: at least 1, and shorter than the renew deadline of 10000 ms" },
	};
	struct hm_err e;

	(void)state;
	assert_int_equal(election_check_rules(&rules, &e), 0);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		assert_int_equal(election_check_rules(&cases[i].rules, &e), -HM_EINVAL);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

/* ---- four replicas on one Lease, whose requests and answers come late or never, and whose clocks have nothing in
 * common: never two lead at once, nobody while what another sent can be on its way, and one mostly does. */

enum { REPLICAS = 4, STEPS = 400000, STEP_MS = 50, LATE_MS = 9000 };

struct replica {
	struct election v;
	uint64_t offset_ms; /* of its clock */
	bool waits;
	enum election_step step;
	struct kube_lease_write w;
	char version[KUBE_VERSION_BYTES];
	uint64_t over_ms; /* when the last thing that it sent as a leader is over; the world's clock */
	uint64_t sent_ms, applied_ms, answered_ms, next_ms; /* the world's clock */
	bool applied, ok, absent;
	struct kube_lease answer;
};

static struct {
	struct kube_lease lease;
	bool exists;
	unsigned version, renewals;
} server;

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525U + 1013904223U;
	return (seed >> 8) % below;
}

static void send_request(struct replica *r, uint64_t now)
{
	r->step = election_next(&r->v, now + r->offset_ms);
	if (r->step == ELECTION_WAIT)
		r->step = ELECTION_READ;
	if (r->step != ELECTION_READ)
		election_write(&r->v, r->step, now, &r->w);
	snprintf(r->version, sizeof r->version, "%s", r->v.seen.resource_version);
	r->waits = true;
	r->applied = false;
	r->sent_ms = now;
	r->applied_ms = now + chance(chance(20) == 0 ? LATE_MS : 200);
	r->answered_ms = r->applied_ms + chance(chance(20) == 0 ? LATE_MS : 200);
}

static void apply(struct replica *r)
{
	bool may = r->step == ELECTION_MAKE ? !server.exists
					    : server.exists && strcmp(server.lease.resource_version, r->version) == 0;

	r->applied = true;
	r->ok = r->step == ELECTION_READ || may;
	if (r->step != ELECTION_READ && may) {
		struct kube_lease next = { .duration_s = r->w.duration_s, .transitions = r->w.transitions };

		snprintf(next.holder, sizeof next.holder, "%s", r->w.holder);
		snprintf(next.renewed, sizeof next.renewed, "%u", ++server.renewals);
		snprintf(next.resource_version, sizeof next.resource_version, "%u", ++server.version);
		server.lease = next;
		server.exists = true;
	}
	r->absent = !server.exists;
	r->answer = server.lease;
}

static void take(struct replica *r, uint64_t now)
{
	r->waits = false;
	r->next_ms = now + rules.retry_ms + chance(400);
	if (chance(50) == 0)
		election_conflict(&r->v); /* the answer is lost */
	else if (!r->ok)
		election_conflict(&r->v);
	else if (r->step == ELECTION_READ)
		election_see(&r->v, r->absent ? NULL : &r->answer, now + r->offset_ms);
	else
		election_won(&r->v, &r->answer, r->sent_ms + r->offset_ms);
}

static void never_two(void **state)
{
	static struct replica all[REPLICAS];
	unsigned led = 0, changes = 0;
	int leader = -1;

	(void)state;
	for (unsigned i = 0; i < REPLICAS; i++) {
		char name[16];

		snprintf(name, sizeof name, "r%u", i);
		election_init(&all[i].v, &rules, name);
		all[i].offset_ms = 1 + i * 777777;
	}
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t now = (uint64_t)step * STEP_MS;
		unsigned leaders = 0;

		for (unsigned i = 0; i < REPLICAS; i++) {
			struct replica *r = &all[i];

			if (!r->waits && now >= r->next_ms)
				send_request(r, now);
			if (r->waits && !r->applied && now >= r->applied_ms)
				apply(r);
			if (r->waits && r->applied && now >= r->answered_ms)
				take(r, now);
			if (chance(4000) == 0) /* killed, and another of it begins */
				r->next_ms = now + 20000 + chance(40000);
			if (election_leads(&r->v, now + r->offset_ms)) {
				leaders++;
				changes += leader != (int)i;
				leader = (int)i;
				r->over_ms = now + election_alone_ms(&r->v, now + r->offset_ms);
				for (unsigned k = 0; k < REPLICAS; k++)
					if (k != i && all[k].over_ms > now)
						fail_msg("what %u sent is on its way, and %u leads", k, i);
			}
		}
		assert_in_range(leaders, 0, 1);
		led += leaders;
	}
	assert_true(changes > 20);
	assert_true(led > STEPS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_makes_it),
		cmocka_unit_test(anothers_is_waited_for),
		cmocka_unit_test(the_holders_duration_counts),
		cmocka_unit_test(left_it_is_taken_at_once),
		cmocka_unit_test(what_was_lost_by_time_is_taken_again),
		cmocka_unit_test(another_holder_ends_it_at_once),
		cmocka_unit_test(a_conflict_only_asks_anew),
		cmocka_unit_test(followed_is_exactly_our_host),
		cmocka_unit_test(anothers_last_word_is_waited_for),
		cmocka_unit_test(a_former_process_is_waited_for),
		cmocka_unit_test(what_a_list_leaves_out_is_waited_for),
		cmocka_unit_test(followed_from_when_it_was_renewed),
		cmocka_unit_test(rules_that_do_not_fit),
		cmocka_unit_test(never_two),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
