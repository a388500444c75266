#include "sched/lead/lead.h"

#include "harness/fake_wait.h"

static struct world {
	struct lead *lead;
	unsigned told;
	bool leads, released;
} w;

static void on_change(void *arg, bool leads)
{
	assert_ptr_equal(arg, &w);
	assert_true(leads != w.leads);
	w.leads = leads;
	w.told++;
}

static void on_released(void *arg)
{
	(void)arg;
	w.released = true;
}

static void begin(enum lead_mode mode)
{
	const struct lead_config config = {
		mode,     (struct kube_client *)&fake_loop, "kube-system", "hami",
		"host-1", { 15000, 10000, 2000 },           on_change,     &w,
	};
	struct hm_err e;

	fake_forget();
	w = (struct world) { 0 };
	assert_int_equal(lead_new(fake_loop, &config, &w.lead, &e), 0);
}

static void end(void)
{
	lead_free(w.lead);
	fake_forget();
}

static bool told(const void *arg)
{
	return w.told == *(const unsigned *)arg;
}

static void wait_told(unsigned count)
{
	assert_true(fast_until(fake_loop, told, &count));
}

/* As the server would answer to the request that is open: its holder. */
static void answer_ours(int http, const char *version)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto_str text = { 0 };
	const char *holder;

	assert_int_equal(json_parse(fake_open()->body, strlen(fake_open()->body), &tree, NULL), 0);
	holder = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "spec"), "holderIdentity"));
	assert_memory_equal(holder, "host-1_", 7);
	assert_int_equal(strlen(holder), 7 + 32);
	str_addf(&text,
		 "{\"metadata\":{\"name\":\"hami\",\"uid\":\"u\",\"resourceVersion\":\"%s\"},\"spec\":{"
		 "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,\"renewTime\":\"%s\"}}",
		 version, holder, version);
	fake_answer(KUBE_DONE, http, str_text(&text));
}

static void answer_theirs(const char *renewed)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{\"metadata\":{\"name\":\"hami\",\"uid\":\"u\",\"resourceVersion\":\"9\"},\"spec\":{"
		 "\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,\"renewTime\":\"%s\"}}",
		 renewed);
	fake_answer(KUBE_DONE, 200, str_text(&text));
}

static void make_it_ours(void)
{
	wait_requests(1);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	assert_string_equal(fake_open()->path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/hami");
	fake_answer(KUBE_NOT_FOUND, 404, "");
	assert_int_equal(w.told, 0);
	wait_requests(2);
	assert_int_equal(fake_open()->verb, KUBE_POST);
	assert_string_equal(fake_open()->path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
	answer_ours(201, "5");
	assert_true(w.leads);
	assert_true(lead_is_ours(w.lead));
}

static void made_and_renewed(void **state)
{
	(void)state;
	begin(LEAD_OWN_LEASE);
	make_it_ours();
	for (unsigned i = 0; i < 4; i++) {
		char version[8];

		wait_requests(3 + i);
		snprintf(version, sizeof version, "%u", 5 + i);
		assert_int_equal(fake_open()->verb, KUBE_PATCH);
		assert_non_null(strstr(fake_open()->body, version));
		snprintf(version, sizeof version, "%u", 6 + i);
		answer_ours(200, version);
	}
	assert_int_equal(w.told, 1);
	end();
}

static void lost_when_nobody_answers(void **state)
{
	(void)state;
	begin(LEAD_OWN_LEASE);
	make_it_ours();
	wait_told(2);
	assert_false(w.leads);
	assert_false(lead_is_ours(w.lead));
	/* Each question was given up before the next. */
	for (size_t i = 0; i + 1 < fake_count; i++)
		assert_false(fake_requests[i].open);
	end();
}

/* A process that was stopped for a while knows it at its first look at the clock, before any timer of it fires. */
static void lost_while_it_slept(void **state)
{
	(void)state;
	begin(LEAD_OWN_LEASE);
	make_it_ours();
	fast_moved_ms += 10000;
	assert_false(lead_is_ours(w.lead));
	assert_true(w.leads);
	wait_told(2);
	end();
}

static void another_one_has_taken_it(void **state)
{
	struct lead_stats stats;

	(void)state;
	begin(LEAD_OWN_LEASE);
	make_it_ours();
	wait_requests(3);
	fake_answer(KUBE_CONFLICT, 409, "");
	assert_true(w.leads);
	wait_requests(4);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	answer_theirs("t1");
	assert_false(w.leads);
	lead_stats(w.lead, &stats);
	assert_string_equal(stats.holder, "other");
	assert_int_equal(stats.gained, 1);
	assert_int_equal(stats.lost, 1);
	/* It is read again and again, and taken when it was not renewed for its duration. */
	wait_requests(5);
	answer_theirs("t2");
	fast_moved_ms += 9000;
	wait_requests(6);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fast_moved_ms += 6000;
	answer_theirs("t2");
	wait_requests(7);
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_non_null(strstr(fake_open()->body, "\"resourceVersion\":\"9\""));
	answer_ours(200, "10");
	assert_true(w.leads);
	end();
}

static void left_to_the_next(void **state)
{
	(void)state;
	begin(LEAD_OWN_LEASE);
	make_it_ours();
	lead_release(w.lead, on_released, NULL);
	assert_false(lead_is_ours(w.lead));
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_non_null(strstr(fake_open()->body, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,"));
	assert_non_null(strstr(fake_open()->body, "\"resourceVersion\":\"5\""));
	wait_told(2);
	assert_false(w.released);
	fake_answer(KUBE_DONE, 200, "{}");
	assert_true(w.released);
	fast_run(fake_loop, 5000);
	assert_int_equal(fake_count, 3); /* nothing is taken any more */
	end();
}

static bool is_released(const void *arg)
{
	(void)arg;
	return w.released;
}

static void what_is_not_ours_is_not_left(void **state)
{
	(void)state;
	begin(LEAD_OWN_LEASE);
	wait_requests(1);
	lead_release(w.lead, on_released, NULL);
	assert_false(w.released);
	assert_true(fast_until(fake_loop, is_released, NULL));
	assert_int_equal(fake_count, 1);
	end();
}

#define FOLLOWED(holder, renewed)                                                                                      \
	"{'metadata':{'name':'hami','namespace':'kube-system','uid':'u','resourceVersion':'" renewed                   \
	"'},'spec':{'holderIdentity':'" holder "','leaseDurationSeconds':15,'renewTime':'" renewed "'}}"

static void follows_kube_scheduler(void **state)
{
	(void)state;
	begin(LEAD_FOLLOW);
	assert_string_equal(fake_reflector_path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
	assert_string_equal(fake_reflector_selector, "metadata.name=hami");
	fake_watch(FOLLOWED("host-10_x", "1"), false);
	assert_int_equal(w.told, 0);
	fast_moved_ms += 15000;
	fake_watch(FOLLOWED("host-1_x", "2"), false);
	assert_true(w.leads);
	fast_moved_ms += 9000;
	fake_watch(FOLLOWED("host-1_x", "3"), false);
	fast_moved_ms += 9000;
	assert_true(lead_is_ours(w.lead));
	fake_watch(FOLLOWED("host-2_x", "4"), false);
	assert_false(w.leads);
	fake_watch(FOLLOWED("", "5"), false);
	fake_watch(FOLLOWED("host-1_y", "6"), false);
	/* Whoever left it may have Bindings on their way: as long as his Lease would have lasted. */
	assert_false(w.leads);
	fast_moved_ms += 10000;
	fake_watch(FOLLOWED("host-1_y", "7"), false);
	assert_false(lead_is_ours(w.lead));
	assert_int_equal(lead_alone_ms(w.lead), 0);
	wait_told(3);
	assert_true(w.leads);
	fake_watch(FOLLOWED("host-1_y", "8"), true);
	assert_false(w.leads);
	fake_watch(FOLLOWED("host-1_y", "9"), false);
	assert_true(w.leads);
	fast_moved_ms += 10000; /* not renewed */
	assert_false(lead_is_ours(w.lead));
	wait_told(6);
	assert_int_equal(fake_count, 0);
	end();
}

/* A former process may have led beside the kube-scheduler that goes on; and what a list leaves out nobody tells. */
static void what_was_not_seen_is_waited_for(void **state)
{
	(void)state;
	begin(LEAD_FOLLOW);
	fake_reflector.lists(fake_reflector.arg);
	fake_watch(FOLLOWED("host-1_x", "1"), false);
	fake_reflector.listed(fake_reflector.arg);
	assert_false(lead_is_ours(w.lead));
	fast_moved_ms += 14000;
	fake_watch(FOLLOWED("host-1_x", "2"), false);
	assert_false(lead_is_ours(w.lead));
	wait_told(1);
	assert_true(w.leads);
	fake_watch(FOLLOWED("host-2_x", "3"), false);
	fast_moved_ms += 14000;
	fake_reflector.lists(fake_reflector.arg);
	fake_watch(FOLLOWED("host-1_x", "8"), false);
	fake_reflector.listed(fake_reflector.arg);
	fast_moved_ms += 14000;
	fake_watch(FOLLOWED("host-1_x", "9"), false);
	assert_false(lead_is_ours(w.lead));
	/* In sight the whole time. */
	fake_watch(FOLLOWED("host-2_x", "10"), false);
	fast_moved_ms += 15000;
	fake_watch(FOLLOWED("host-1_x", "11"), false);
	assert_true(lead_is_ours(w.lead));
	end();
}

/* The watch lags: what counts is when the Lease was renewed, by the clock of the machine that is ours, too. */
static void told_late(void **state)
{
	static const struct {
		int64_t ago_ms;
		uint64_t alone_ms; /* of 15 s */
	} rows[] = { { 0, 15000 }, { 4000, 11000 }, { 9000, 6000 }, { 10000, 0 }, { 100000, 0 }, { -50000, 15000 } };

	(void)state;
	fast = 1;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str time = { 0 }, text = { 0 };

		begin(LEAD_FOLLOW);
		str_add_utc(&time, (uint64_t)((int64_t)clock_wall_ms() - rows[i].ago_ms));
		str_addf(&text,
			 "{'metadata':{'name':'hami','namespace':'kube-system','uid':'u','resourceVersion':'1'},'spec':"
			 "{'holderIdentity':'host-1_x','leaseDurationSeconds':15,'renewTime':'%s.000000Z'}}",
			 str_text(&time));
		/* There was none yet: nobody led before. */
		fake_reflector.listed(fake_reflector.arg);
		fake_watch(str_text(&text), false);
		/* Its text has whole seconds here. */
		assert_in_range(lead_alone_ms(w.lead), rows[i].alone_ms > 1500 ? rows[i].alone_ms - 1500 : 0,
				rows[i].alone_ms);
		end();
	}
	fast = 15;
}

static void alone_it_always_leads(void **state)
{
	(void)state;
	begin(LEAD_ALWAYS);
	assert_false(lead_is_ours(w.lead));
	wait_told(1);
	fast_moved_ms += 1000000;
	assert_true(lead_is_ours(w.lead));
	assert_true(lead_alone_ms(w.lead) == UINT64_MAX);
	lead_release(w.lead, on_released, NULL);
	assert_true(fast_until(fake_loop, is_released, NULL));
	assert_false(lead_is_ours(w.lead));
	assert_int_equal(fake_count, 0);
	end();
}

static void what_is_missing_is_said(void **state)
{
	struct lead_config config = { LEAD_OWN_LEASE, NULL, "", "hami", "h", { 15000, 10000, 2000 }, on_change, NULL };
	struct lead *lead;
	struct hm_err e;

	(void)state;
	assert_int_equal(lead_new(fake_loop, &config, &lead, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "leader election needs the Lease's name and namespace");
	config.name_space = "ns";
	config.host = "";
	assert_int_equal(lead_new(fake_loop, &config, &lead, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "leader election needs a host name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_and_renewed),
		cmocka_unit_test(lost_when_nobody_answers),
		cmocka_unit_test(lost_while_it_slept),
		cmocka_unit_test(another_one_has_taken_it),
		cmocka_unit_test(left_to_the_next),
		cmocka_unit_test(what_is_not_ours_is_not_left),
		cmocka_unit_test(follows_kube_scheduler),
		cmocka_unit_test(what_was_not_seen_is_waited_for),
		cmocka_unit_test(told_late),
		cmocka_unit_test(alone_it_always_leads),
		cmocka_unit_test(what_is_missing_is_said),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 15;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
