/* The kubelet's three questions without a kubelet: the calls are the test's (ld --wrap), what is answered is kept. */
#include "agent/serve/service.h"

#include "agent/serve/offer_slices.h"

#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "unit/agent/agent_node.h"

struct dp_call {
	unsigned answers;
	int code; /* of dp_fail */
	char text[512];
	char ids[512]; /* of GetPreferredAllocation: "a b, c" */
	char cdi[2][64];
	size_t containers, envs;
	void *data;
};

void __wrap_dp_reply_preferred(struct dp_call *c, const char *const *const *ids, const size_t *counts, size_t count);
void __wrap_dp_reply_allocate(struct dp_call *c, const struct dp_container_answer *answers, size_t count);
void __wrap_dp_reply_pre_start(struct dp_call *c);
void __wrap_dp_fail(struct dp_call *c, const struct hm_err *e);
void __wrap_dp_call_set_data(struct dp_call *c, void *data);
void *__wrap_dp_call_data(const struct dp_call *c);

void __wrap_dp_reply_preferred(struct dp_call *c, const char *const *const *ids, const size_t *counts, size_t count)
{
	size_t at = 0;

	c->answers++;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < counts[i]; k++)
			at += (size_t)snprintf(c->ids + at, sizeof c->ids - at, "%s%s",
					       k > 0   ? " "
					       : i > 0 ? ", "
						       : "",
					       ids[i][k]);
}

void __wrap_dp_reply_allocate(struct dp_call *c, const struct dp_container_answer *answers, size_t count)
{
	c->answers++;
	c->containers = count;
	c->envs = answers[0].env_count;
	for (size_t i = 0; i < count && i < 2; i++)
		if (answers[i].cdi_count == 1)
			snprintf(c->cdi[i], sizeof c->cdi[i], "%s", answers[i].cdi_names[0]);
}

void __wrap_dp_reply_pre_start(struct dp_call *c)
{
	c->answers++;
}

void __wrap_dp_fail(struct dp_call *c, const struct hm_err *e)
{
	c->answers++;
	c->code = e->code;
	snprintf(c->text, sizeof c->text, "%s", e->msg);
}

void __wrap_dp_call_set_data(struct dp_call *c, void *data)
{
	c->data = data;
}

void *__wrap_dp_call_data(const struct dp_call *c)
{
	return c->data;
}

/* ---- */

static struct agent_node node;
static struct loop *loop;
static struct service *service;
static struct offer *offer;
static size_t started, watching;

static void on_started(void *arg)
{
	(void)arg;
	started++;
}

static enum pod_life on_life(void *arg, const struct claim *c)
{
	(void)arg, (void)c;
	return POD_IS_GONE;
}

static void on_watchers(void *arg, size_t watchers)
{
	(void)arg;
	watching = watchers;
}

static int make(struct loop *l, struct service **out, struct hm_err *e)
{
	const struct service_config config = { .options = &node.options,
					       .paths = &node.paths,
					       .claims = node.claims,
					       .counter = node.counter,
					       .pending = node.pending,
					       .edits = node.edits,
					       .offer = offer,
					       .started = on_started,
					       .life = on_life,
					       .watchers = on_watchers };

	return service_new(l, &config, out, e);
}

static void give_cards(struct service *s)
{
	struct hm_err e;

	if (offer->class->take(offer, node.fleet, &e) < 0)
		fail_msg("%s", e.msg);
	service_set_fleet(s, node.fleet);
}

static int setup(void **state)
{
	struct hm_err e;

	fast = 5;
	fast_moved_ms = 0;
	started = watching = 0;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	if (temp_setup(state) < 0)
		return -1;
	node_setup(&node);
	if (loop_new(&loop, &e) < 0 || node_open(&node, &e) < 0 ||
	    offer_slices_new(&node.options, &node.paths, node.claims, &offer, &e) < 0)
		return -1;
	return make(loop, &service, &e);
}

static int teardown(void **state)
{
	service_free(HM_STEAL(service));
	offer_free(HM_STEAL(offer));
	node_teardown(&node);
	loop_free(HM_STEAL(loop));
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static struct dp_call allocate(struct service *s, const char *const *ids, size_t count)
{
	const struct dp_container_request r = { ids, count };
	struct dp_handlers h = service_handlers(s);
	struct dp_call c = { 0 };

	h.allocate(h.arg, &c, &r, 1);
	assert_int_equal(c.answers, 1);
	return c;
}

static void pre_start(struct service *s, struct dp_call *c, const char *const *ids, size_t count)
{
	const struct dp_container_request r = { ids, count };
	struct dp_handlers h = service_handlers(s);

	h.pre_start(h.arg, c, &r);
}

static bool is_answered(const void *call)
{
	return ((const struct dp_call *)call)->answers > 0;
}

static const char *const two[] = { SLOT(GPU0, 0), SLOT(GPU0, 1) };
static const char *const apart[] = { SLOT(GPU0, 0), SLOT(GPU0, 2) };

/* ---- */

static void before_the_cards_are_known_it_says_so(void **state)
{
	const struct dp_preferred_request want = { two, NULL, 2, 0, 1 };
	struct dp_handlers h = service_handlers(service);
	struct dp_call c = allocate(service, two, 2), p = { 0 };

	(void)state;
	assert_int_equal(c.code, HM_EAGAIN);
	assert_non_null(strstr(c.text, "not known yet"));
	h.preferred(h.arg, &p, &want, 1);
	assert_int_equal(p.answers, 1);
	assert_int_equal(p.code, HM_EAGAIN);
}

static void preferred_answers_each_container(void **state)
{
	static const char *const free_ids[] = { SLOT(GPU0, 1), SLOT(GPU1, 0), SLOT(GPU1, 1), SLOT(GPU1, 2) };
	const struct dp_preferred_request want[] = { { free_ids, NULL, 4, 0, 3 }, { free_ids, free_ids, 4, 1, 1 } };
	struct dp_handlers h = service_handlers(service);
	struct dp_call c = { 0 };

	(void)state;
	give_cards(service);
	h.preferred(h.arg, &c, want, 2);
	assert_int_equal(c.answers, 1);
	assert_int_equal(c.code, 0);
	assert_string_equal(c.ids, SLOT(GPU1, 0) " " SLOT(GPU1, 1) " " SLOT(GPU1, 2) ", " SLOT(GPU0, 1));
}

static void each_container_gets_a_number_of_its_own(void **state)
{
	const struct dp_container_request r[] = { { two, 2 }, { apart, 2 } };
	struct dp_handlers h = service_handlers(service);
	struct dp_call c = { 0 };

	(void)state;
	give_cards(service);
	h.allocate(h.arg, &c, r, 2);
	assert_int_equal(c.code, 0);
	assert_int_equal(c.containers, 2);
	assert_string_equal(c.cdi[0], "hami.io/vgpu=v.1");
	assert_string_equal(c.cdi[1], "hami.io/vgpu=v.2");
	assert_int_equal(temp_count("state/claims"), 0); /* late: nothing on disk */
	assert_int_equal(pending_count(node.pending), 2);
	assert_int_equal(service_stats(service).allocations, 2);
	assert_int_equal(offer_slices_broken_runs(offer), 1);
	allocate(service, two, 2);
	assert_int_equal(offer_slices_broken_runs(offer), 1);
	node.options.slicing = "dynamic"; /* where neighbours mean nothing */
	allocate(service, apart, 2);
	assert_int_equal(offer_slices_broken_runs(offer), 1);
	assert_int_equal(service_stats(service).allocations, 4);
}

static void bad_ids_fail_the_call(void **state)
{
	static const struct {
		const char *ids[2];
		size_t count;
		int code;
	} rows[] = {
		{ { NULL }, 0, HM_EINVAL },
		{ { SLOT(GPU0, 0), SLOT(GPU0, 4) }, 2, HM_ENOTFOUND },
		{ { SLOT(GPU0, 0), SLOT(GPU0, 0) }, 2, HM_EINVAL },
		{ { "all" }, 1, HM_EPROTO },
	};

	(void)state;
	give_cards(service);
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		assert_int_equal(allocate(service, rows[i].ids, rows[i].count).code, rows[i].code);
	assert_int_equal(service_stats(service).allocations, 0);
	assert_int_equal(pending_count(node.pending), 0);
	assert_string_equal(allocate(service, two, 2).cdi[0], "hami.io/vgpu=v.5"); /* a number is never given twice */
}

static void a_start_that_is_known_is_answered_at_once(void **state)
{
	struct dp_call c = { 0 };

	(void)state;
	give_cards(service);
	allocate(service, two, 2);
	pre_start(service, &c, two, 2);
	assert_int_equal(c.answers, 1);
	assert_int_equal(c.code, 0);
	assert_int_equal(started, 1);
	assert_int_equal(service_stats(service).starts, 1);
	assert_true(temp_exists("cdi/hami-vgpu-v.1.json"));
	assert_true(temp_exists("state/alloc/1/limits"));
	assert_non_null(claims_find(node.claims, 1));
	assert_int_equal(pending_count(node.pending), 0);
}

static void classic_answers_all_in_allocate(void **state)
{
	struct dp_call c;

	(void)state;
	node.options.binding = "classic";
	give_cards(service);
	c = allocate(service, two, 2);
	assert_int_equal(c.code, 0);
	assert_string_equal(c.cdi[0], "");
	assert_int_equal(c.envs, 2);
	assert_non_null(claims_find(node.claims, 1));
	assert_true(temp_exists("state/alloc/1/limits"));
	assert_int_equal(temp_count("cdi"), 0);
}

/* What comes while a start waits, and what it is then answered. */
static void a_start_that_is_not_known_waits(void **state)
{
	static const struct {
		bool cards, call;
		int code;
	} comes[] = {
		{ true, true, 0 },
		{ true, false, HM_EAGAIN },
		{ false, true, HM_EAGAIN },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(comes); i++) {
		uint64_t begun = __wrap_loop_now_ms(loop);
		struct dp_call c = { 0 };
		struct hm_err e;

		service_set_fleet(service, NULL);
		pre_start(service, &c, two, 2);
		fast_run(loop, 3 * SERVICE_LOOK_MS);
		assert_int_equal(c.answers, 0);
		if (comes[i].cards)
			give_cards(service);
		if (comes[i].call)
			assert_int_equal(pending_add(node.pending, 70 + i, two, 2, 0, &e), 0);
		assert_true(fast_until(loop, is_answered, &c));
		assert_int_equal(c.answers, 1);
		assert_int_equal(c.code, comes[i].code);
		if (comes[i].code != 0)
			assert_true(__wrap_loop_now_ms(loop) - begun >= SERVICE_START_WAIT_MS);
		pending_remove(node.pending, 70 + i);
		if (comes[i].code == 0)
			assert_int_equal(claims_remove(node.claims, 70 + i, &e), 0);
	}
	assert_int_equal(service_stats(service).starts, 1);
	assert_int_equal(service_stats(service).start_errors, 2);
}

static void a_waiting_call_that_is_given_up_is_forgotten(void **state)
{
	struct dp_handlers h = service_handlers(service);
	struct dp_call gone = { 0 }, stays = { 0 }, left = { 0 };

	(void)state;
	give_cards(service);
	pre_start(service, &gone, two, 2);
	pre_start(service, &stays, two, 2);
	h.gone(h.arg, &gone);
	assert_true(fast_until(loop, is_answered, &stays));
	assert_int_equal(gone.answers, 0);
	pre_start(service, &left, two, 2);
	service_free(HM_STEAL(service)); /* a leak here is the sanitizer's and the sweep's to find */
	assert_int_equal(left.answers, 0);
}

static void watchers_are_passed_on(void **state)
{
	struct dp_handlers h = service_handlers(service);

	(void)state;
	h.watchers(h.arg, 3);
	assert_int_equal(watching, 3);
}

/* ---- */

/* All three questions. A call that fails may be asked again, and is then answered as if nothing had been. */
static int ask_all(struct service *s)
{
	const struct dp_preferred_request want = { two, NULL, 2, 0, 1 };
	struct dp_handlers h = service_handlers(s);
	struct dp_call p = { 0 }, a = { 0 }, start = { 0 }, wait = { 0 };
	const struct dp_container_request r = { two, 2 };
	int bad = 0;

	h.preferred(h.arg, &p, &want, 1);
	assert_int_equal(p.answers, 1);
	h.allocate(h.arg, &a, &r, 1);
	assert_int_equal(a.answers, 1);
	bad += p.code != 0;
	if (a.code != 0) {
		a = (struct dp_call) { 0 };
		h.allocate(h.arg, &a, &r, 1);
		assert_int_equal(a.code, 0);
		bad++;
	}
	pre_start(s, &start, two, 2);
	if (start.answers == 0)
		h.gone(h.arg, &start); /* its Allocate was not remembered: it waits */
	else if (start.code != 0) {
		start = (struct dp_call) { 0 };
		pre_start(s, &start, two, 2);
		assert_int_equal(start.code, 0);
		bad++;
	}
	pre_start(s, &wait, apart, 2);
	if (wait.answers == 0)
		h.gone(h.arg, &wait);
	return bad == 0 ? 0 : -1;
}

static int scenario(void *arg)
{
	struct service *s = NULL;
	struct loop *l = NULL;
	struct hm_err e;
	int r = -1;

	(void)arg;
	if (loop_new(&l, &e) == 0 && node_open(&node, &e) == 0 &&
	    offer_slices_new(&node.options, &node.paths, node.claims, &offer, &e) == 0 && make(l, &s, &e) == 0 &&
	    offer->class->take(offer, node.fleet, &e) == 0) {
		service_set_fleet(s, node.fleet);
		r = ask_all(s);
		while (claims_count(node.claims) > 0)
			if (binding_remove(&node.paths, node.claims, claims_at(node.claims, 0)->number, &e) < 0)
				r = -1;
	}
	service_free(s);
	offer_free(HM_STEAL(offer));
	node_close(&node);
	loop_free(l);
	return r;
}

static void sweep_binding(const char *binding)
{
	struct sweep_result r;

	service_free(HM_STEAL(service));
	offer_free(HM_STEAL(offer));
	node_close(&node);
	node.options.binding = binding;
	r = sweep_run(scenario, NULL);
	assert_false(r.failed);
	assert_true(r.allocations > 40);
	if (r.leaked > 0)
		fail_msg("%s: %zu blocks leaked when allocation %zu failed", binding, r.leaked, r.leaked_at);
	assert_int_equal(temp_count("state/alloc"), 0);
	assert_int_equal(temp_count("state/claims"), 0);
	assert_int_equal(temp_count("cdi"), 0);
}

static void sweep_late(void **state)
{
	(void)state;
	sweep_binding("late");
}

static void sweep_classic(void **state)
{
	(void)state;
	sweep_binding("classic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(before_the_cards_are_known_it_says_so),
		TEST(preferred_answers_each_container),
		TEST(each_container_gets_a_number_of_its_own),
		TEST(bad_ids_fail_the_call),
		TEST(a_start_that_is_known_is_answered_at_once),
		TEST(classic_answers_all_in_allocate),
		TEST(a_start_that_is_not_known_waits),
		TEST(a_waiting_call_that_is_given_up_is_forgotten),
		TEST(watchers_are_passed_on),
		TEST(sweep_late),
		TEST(sweep_classic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
