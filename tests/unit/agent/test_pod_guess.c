#include "agent/hami/pod_guess.h"

#include <string.h>

#include "contract/hami.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"

#define RESOURCE "hami.com/vgpu" /* that of ENTRY */
#define NO_ANSWER ""

enum { MAX_PODS = 4, MAX_CONTAINERS = 4 };

static struct claims *claims;
static struct pod_view pods[MAX_PODS];
static struct pod_container containers[MAX_PODS][MAX_CONTAINERS];
static const struct pod_view *list[MAX_PODS];
static size_t pod_count;
static struct node_lock lock;
static struct pod_guess_facts facts;

static int setup(void **state)
{
	struct hm_err e;

	if (temp_setup(state) < 0 || claims_open(temp_path("claims"), &claims, &e) < 0)
		return -1;
	pod_count = 0;
	facts = (struct pod_guess_facts) { .pods = list,
					   .node = "n1",
					   .resource = RESOURCE,
					   .alloc_dir = "/s/alloc",
					   .claims = claims,
					   .last_uid = "" };
	return 0;
}

static int teardown(void **state)
{
	claims_free(claims);
	return temp_teardown(state);
}

/* Bound here, allocating; containers c0, c1, ... that ask for so many devices each. */
static struct pod_view *pod(const char *name, const char *gpus)
{
	struct pod_view *v = &pods[pod_count];
	struct pod_container *c = containers[pod_count];

	*v = (struct pod_view) { .containers = c, .order = pod_count };
	snprintf(v->uid, sizeof v->uid, "uid-%s", name);
	snprintf(v->name_space, sizeof v->name_space, "ns");
	snprintf(v->name, sizeof v->name, "%s", name);
	snprintf(v->node, sizeof v->node, "n1");
	snprintf(v->phase, sizeof v->phase, "Pending");
	v->annotations[POD_NODE] = (char *)"n1";
	v->annotations[POD_BIND_TIME] = (char *)"1700000000";
	v->annotations[POD_BIND_PHASE] = (char *)HAMI_PHASE_ALLOCATING;
	v->annotations[POD_TO_ALLOCATE] = (char *)"GPU-0,NVIDIA,1000,10:;";
	for (; *gpus != '\0'; gpus++, v->container_count++) {
		c[v->container_count] = (struct pod_container) { .gpus = (uint32_t)(*gpus - '0') };
		snprintf(c[v->container_count].name, sizeof c->name, "c%zu", v->container_count);
	}
	list[pod_count++] = v;
	facts.pod_count = pod_count;
	return v;
}

static void claim(uint64_t number, const char *name, const char *container, const char *id)
{
	char uid[64];
	struct claim c;

	snprintf(uid, sizeof uid, "uid-%s", name);
	c = make_claim(number, uid, "", id, NULL);
	snprintf(c.container, sizeof c.container, "%s", container);
	put_claim(claims, c);
}

static void locked(const char *name)
{
	snprintf(lock.pod_namespace, sizeof lock.pod_namespace, "ns");
	snprintf(lock.pod_name, sizeof lock.pod_name, "%s", name);
	facts.lock = &lock;
}

/* "pod/container number rivals" for an Allocate of a-0 (and a-1, ...), or the error. */
static const char *guess(size_t count)
{
	static const char *const ids[] = { "a-0", "a-1", "a-2" };
	static char text[600];
	struct pod_guess g;
	struct hm_err e;

	if (pod_guess_find(&facts, ids, count, &g, &e) < 0)
		snprintf(text, sizeof text, "%s: %s", e.code == HM_EAGAIN ? "wait" : "no", e.msg);
	else
		snprintf(text, sizeof text, "%s/%s %llu %u", g.pod->name, g.container->name,
			 (unsigned long long)g.number, g.rivals);
	return text;
}

static void the_only_pod(void **state)
{
	(void)state;
	assert_string_equal(guess(1), "wait: no binding pod found on node n1: none that HAMi's scheduler placed here "
				      "and that waits for 1 device");
	pod("a", "021");
	assert_string_equal(guess(2), "a/c1 0 0");
	assert_int_equal(strncmp(guess(1), "wait: no binding pod", 20), 0);
}

/* Who may not be meant at all. */
static void no_candidates(void **state)
{
	static const struct {
		const char *what;
		enum pod_annotation which;
		const char *value;
	} rows[] = {
		{ "another node chosen", POD_NODE, "n2" }, { "no node chosen", POD_NODE, NULL },
		{ "never bound", POD_BIND_TIME, NULL },    { "failed", POD_BIND_PHASE, HAMI_PHASE_FAILED },
		{ "no phase", POD_BIND_PHASE, NULL },
	};
	struct pod_view *v = pod("a", "1");

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char *was = v->annotations[rows[i].which];

		v->annotations[rows[i].which] = (char *)rows[i].value;
		if (strncmp(guess(1), "wait: ", 6) != 0)
			fail_msg("%s: %s", rows[i].what, guess(1));
		v->annotations[rows[i].which] = was;
	}
	assert_string_equal(guess(1), "a/c0 0 0");
	v->terminal = true;
	assert_int_equal(strncmp(guess(1), "wait: ", 6), 0);
	v->terminal = false;
	snprintf(v->node, sizeof v->node, "n2");
	assert_int_equal(strncmp(guess(1), "wait: ", 6), 0);
	snprintf(v->node, sizeof v->node, "n1");
	v->trouble = (char *)"its spec is odd";
	assert_int_equal(strncmp(guess(1), "wait: ", 6), 0);
	locked("a");
	assert_string_equal(guess(1), "no: pod ns/a: its spec is odd");
}

/* The kubelet asks in the spec's order and keeps each answer before it asks for the next. */
static void the_first_container_without_an_entry(void **state)
{
	hm_auto(checkpoint) *none = make_checkpoint("");
	hm_auto(checkpoint) *one = make_checkpoint(ENTRY("uid-a", "c0", "\"a-0\"", NO_ANSWER));
	hm_auto(checkpoint) *both = make_checkpoint(
		ENTRY("uid-a", "c0", "\"a-0\"", NO_ANSWER) "," ENTRY("uid-a", "c2", "\"a-0\"", NO_ANSWER));
	const struct pod_view *v = pod("a", "101");

	(void)state;
	facts.checkpoint = none;
	assert_string_equal(guess(1), "a/c0 0 0");
	assert_false(pod_guess_is_through(&facts, v));
	facts.checkpoint = one;
	assert_string_equal(guess(1), "a/c2 0 0");
	assert_false(pod_guess_is_through(&facts, v));
	facts.checkpoint = both;
	assert_true(pod_guess_is_through(&facts, v));
	assert_int_equal(strncmp(guess(1), "wait: ", 6), 0);
	/* A pod that was made again under the name of another is another. */
	snprintf(pods[0].uid, sizeof pods[0].uid, "uid-new");
	assert_string_equal(guess(1), "a/c0 0 0");
	/* Without a checkpoint our claims stand for it. */
	facts.checkpoint = NULL;
	claim(7, "new", "c0", "x");
	assert_string_equal(guess(1), "a/c2 0 0");
}

/* What this call has been answered with is in no checkpoint; asked once more in another call, it is an answer lost. */
static void several_containers_of_one_call(void **state)
{
	static const uint64_t call[] = { 7, 8 };
	hm_auto(checkpoint) *none = make_checkpoint("");

	(void)state;
	facts.checkpoint = none;
	pod("a", "1011");
	claim(7, "a", "c0", "a-0");
	assert_string_equal(guess(1), "a/c0 7 0");
	facts.call = call;
	facts.call_count = 1;
	assert_string_equal(guess(1), "a/c2 0 0");
	claim(8, "a", "c2", "a-0");
	facts.call_count = 2;
	assert_string_equal(guess(1), "a/c3 0 0");
	facts.call_count = 0;
	assert_string_equal(guess(1), "a/c0 7 0");
}

static void bound_first_comes_first(void **state)
{
	(void)state;
	pod("a", "1")->order = 9;
	pod("b", "1")->order = 3;
	pod("c", "2")->order = 1;
	pod("d", "1")->order = 5;
	assert_string_equal(guess(1), "b/c0 0 2");
	facts.last_uid = "uid-a"; /* it has more to come */
	assert_string_equal(guess(1), "a/c0 0 0");
	locked("d");
	assert_string_equal(guess(1), "d/c0 0 0");
	locked("gone");
	assert_string_equal(guess(1), "wait: pods \"gone\" not found: the node's lock names it");
	facts.lock_is_stale = true;
	assert_string_equal(guess(1), "a/c0 0 0");
}

/* The lock names a pod that asks for another number: wrong only if it fits nobody else. */
static void the_lock_s_pod_asks_for_another_number(void **state)
{
	(void)state;
	pod("a", "2");
	locked("a");
	assert_string_equal(guess(1), "no: device number not matched: the kubelet asks for 1, container c0 of pod "
				      "ns/a for 2");
	assert_string_equal(guess(3), "no: device number not matched: the kubelet asks for 3, container c0 of pod "
				      "ns/a for 2");
	pod("b", "1");
	assert_string_equal(guess(1), "b/c0 0 0");
	pods[0].terminal = true; /* the lock is left from before */
	assert_string_equal(guess(1), "b/c0 0 0");
}

/* An answer that was lost: the agent has a claim, the kubelet no entry. */
static void an_answer_that_was_lost(void **state)
{
	hm_auto(checkpoint) *none = make_checkpoint("");

	(void)state;
	facts.checkpoint = none;
	pod("a", "1");
	claim(7, "a", "c0", "a-0");
	assert_string_equal(guess(1), "a/c0 7 0");
	/* Other ids: the same claim all the same. */
	claim(7, "a", "c0", "b-0");
	assert_string_equal(guess(1), "a/c0 7 0");
	/* Somebody who was never answered comes first, the same ids before others. */
	pod("b", "1");
	assert_string_equal(guess(1), "b/c0 0 0");
	claim(8, "b", "c0", "a-0");
	assert_string_equal(guess(1), "b/c0 8 0");
}

/* The kubelet lost its checkpoint: those who run are asked for again, with phase success. */
static void a_kubelet_that_forgot(void **state)
{
	hm_auto(checkpoint) *none = make_checkpoint("");
	hm_auto(checkpoint) *taken = make_checkpoint(ENTRY("uid-b", "c0", "\"z-0\"", USAGE_5));

	(void)state;
	facts.checkpoint = none;
	pod("a", "1")->annotations[POD_BIND_PHASE] = (char *)HAMI_PHASE_SUCCESS;
	pods[0].annotations[POD_TO_ALLOCATE] = (char *)";;";
	assert_int_equal(strncmp(guess(1), "wait: ", 6), 0); /* another agent's; all was served */
	pods[0].annotations[POD_TO_ALLOCATE] = (char *)"GPU-0,NVIDIA,1000,10:;";
	assert_string_equal(guess(1), "a/c0 0 0");
	claim(5, "a", "c0", "b-0");
	assert_string_equal(guess(1), "a/c0 5 0");
	/* The kubelet keeps this number for somebody else: not twice. */
	facts.checkpoint = taken;
	assert_string_equal(guess(1), "a/c0 0 0");
}

/* Asked again for what it has. */
static void a_repeated_call(void **state)
{
	hm_auto(checkpoint) *kept = make_checkpoint(ENTRY("uid-a", "c0", "\"a-0\"", USAGE_5));

	(void)state;
	pod("a", "1");
	claim(5, "a", "c0", "a-0");
	assert_string_equal(guess(1), "a/c0 5 0");
	facts.checkpoint = kept;
	assert_string_equal(guess(1), "a/c0 5 0");
	pods[0].deleting = true; /* its ids may be somebody else's by now */
	assert_int_equal(strncmp(guess(1), "wait: ", 6), 0);
	pods[0].deleting = false;
	pod("b", "1");
	assert_string_equal(guess(1), "b/c0 0 0");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_only_pod),
		TEST(no_candidates),
		TEST(the_first_container_without_an_entry),
		TEST(several_containers_of_one_call),
		TEST(bound_first_comes_first),
		TEST(the_lock_s_pod_asks_for_another_number),
		TEST(an_answer_that_was_lost),
		TEST(a_kubelet_that_forgot),
		TEST(a_repeated_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
