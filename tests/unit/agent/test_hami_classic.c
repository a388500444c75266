/* Pods and annotations as the API server tells them; no kubelet, so that each answer is looked at by itself. */
#include "agent/hami/hami_classic.h"

#include "core/fmt.h"
#include "hami_world.h"
#include "unit/agent/checkpoint_text.h"

#define A "GPU-0-0-0-0-a"
#define B "GPU-0-0-0-0-b"
#define BOUND(phase) PHASE(phase) ",'hami.io/bind-time':'1787293239'"

const struct node_view *__wrap_node_object_view(const struct node_object *n);

static struct node_view node;
static struct hami_classic *classic;

const struct node_view *__wrap_node_object_view(const struct node_object *n)
{
	(void)n;
	return &node;
}

static struct hami_classic_stats figures(void)
{
	struct hami_classic_stats s;

	hami_classic_stats(classic, &s);
	return s;
}

static void open_world(void)
{
	const struct hami_late_config late = { 0 };
	struct hm_err e;

	node = (struct node_view) { 0 };
	begin(&late);
	const struct hami_classic_config config = { .loop = fake_loop,
						    .node = "node-1",
						    .resource = "nvidia.com/gpu",
						    .alloc_dir = "/s/alloc",
						    .pods = w.pods,
						    .claims = w.claims,
						    .checkpoint = w.checkpoint,
						    .late = w.late,
						    .finish = w.finish };

	assert_int_equal(hami_classic_new(&config, &classic, &e), 0);
}

static void close_world(void)
{
	hami_classic_free(classic);
	classic = NULL;
	end();
}

/* Allocate of id "<A>-0" under this number; keeps the claim as the agent does. "pod/container number MiB", or why not.
 */
static const char *allocate(uint64_t number)
{
	static const char *const ids[] = { A "-0" };
	static char text[600];
	struct hm_err e;
	struct claim c;
	int r = hami_classic_claim(classic, ids, 1, number, &w.inventory, &c, &e);

	if (r < 0) {
		snprintf(text, sizeof text, "%s: %s", r == -HM_EAGAIN ? "wait" : "no", e.msg);
		return text;
	}
	assert_string_equal(c.cdi, "");
	snprintf(text, sizeof text, "%s/%s %llu %llu", c.pod_name, c.container, (unsigned long long)c.number,
		 (unsigned long long)(c.cards[0].memory_bytes >> 20));
	put_claim(w.claims, c);
	return text;
}

/* PreStart: the checkpoint says that number 7's answer is container c0's of this pod. */
static const char *start(const char *name)
{
	static const char *const ids[] = { A "-0" };
	static char text[600];
	struct prestart_target target = { .number = 7, .classic = true, .container = "c0" };
	struct hm_err e;
	struct claim c;
	int r;

	snprintf(target.pod_uid, sizeof target.pod_uid, "uid-%s", name);
	r = hami_classic_start(classic, &target, ids, 1, claims_find(w.claims, 7), &w.inventory, &c, &e);
	if (r < 0) {
		snprintf(text, sizeof text, "%s: %s", r == -HM_EAGAIN ? "wait" : "no", e.msg);
		return text;
	}
	snprintf(text, sizeof text, "%s %s %llu", c.pod_name, c.cards[0].uuid,
		 (unsigned long long)(c.cards[0].memory_bytes >> 20));
	claim_fini(&c);
	return text;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void the_annotation_s_part(void **state)
{
	(void)state;
	open_world();
	assert_true(begins(allocate(7), "wait: no binding pod found on node node-1"));
	tell_pod("a", "1", "Pending", A ",NVIDIA,3000,30:;", BOUND("allocating"));
	assert_string_equal(allocate(7), "a/c0 7 3000");
	assert_string_equal(start("a"), "a " A " 3000");
	assert_int_equal(fake_count, 0); /* the API server is asked for nothing */
	close_world();
}

/* Asked for again: the same number, so the same answer. */
static void asked_again(void **state)
{
	(void)state;
	open_world();
	tell_pod("a", "1", "Pending", A ",NVIDIA,3000,30:;", BOUND("allocating"));
	assert_string_equal(allocate(7), "a/c0 7 3000");
	assert_string_equal(allocate(8), "a/c0 7 3000");
	assert_int_equal(figures().again, 1);
	assert_int_equal(claims_count(w.claims), 1);
	close_world();
}

static void a_lock_that_names_nobody_we_know(void **state)
{
	(void)state;
	open_world();
	tell_pod("a", "1", "Pending", A ",NVIDIA,3000,30:;", BOUND("allocating"));
	node.annotations[NODE_LOCK] = "2026-08-21T06:20:39Z,ns,b";
	assert_string_equal(allocate(7), "wait: pods \"b\" not found: the node's lock names it");
	assert_true(begins(allocate(7), "wait: "));
	fast_moved_ms += HAMI_CLASSIC_LOCK_WAIT_MS; /* long enough: it blocks every pod of the node */
	assert_string_equal(allocate(7), "a/c0 7 3000");
	/* Another lock is another wait; none that can be read, or names nobody, is no lock. */
	node.annotations[NODE_LOCK] = "2026-08-21T06:20:40Z,ns,c";
	assert_true(begins(allocate(8), "wait: "));
	node.annotations[NODE_LOCK] = "garbage,x";
	assert_string_equal(allocate(8), "a/c0 7 3000");
	node.annotations[NODE_LOCK] = "2026-08-21T06:20:40Z";
	assert_string_equal(allocate(8), "a/c0 7 3000");
	close_world();
}

static void the_lock_s_pod(void **state)
{
	(void)state;
	open_world();
	tell_pod("a", "1", "Pending", A ",NVIDIA,1000,30:;", BOUND("allocating"));
	tell_pod("b", "1", "Pending", B ",NVIDIA,2000,30:;", BOUND("allocating"));
	node.annotations[NODE_LOCK] = "2026-08-21T06:20:39Z,ns,b";
	assert_string_equal(allocate(7), "b/c0 7 2000");
	assert_int_equal(figures().by_lock, 1);
	assert_int_equal(figures().by_order, 0);
	close_world();
}

/* Who got the answer is known at the start: the limits can be put right, the card cannot. */
static void an_answer_that_went_to_another(void **state)
{
	(void)state;
	open_world();
	tell_pod("a", "1", "Pending", A ",NVIDIA,1000,30:;", BOUND("allocating"));
	tell_pod("b", "1", "Pending", A ",NVIDIA,2000,30:;", BOUND("allocating"));
	tell_pod("c", "1", "Pending", B ",NVIDIA,3000,30:;", BOUND("allocating"));
	assert_string_equal(allocate(7), "a/c0 7 1000");
	assert_int_equal(figures().by_order, 1);
	assert_string_equal(start("b"), "b " A " 2000");
	assert_int_equal(figures().moved, 1);
	assert_string_equal(start("c"), "wait: this container was given the card " A " of pod ns/a, container c0; the "
					"scheduler chose " B " for it: delete the pod, and it is placed again");
	assert_int_equal(figures().misplaced, 1);
	close_world();
}

/* What the pod's annotation cannot be is said at once: waiting would hold up every pod of the node. */
static void refused_for_good(void **state)
{
	static const char *const texts[] = { A ",NVIDIA,0,30:;", "GPU-none,NVIDIA,1000,30:;", A ",NVIDIA,1000:;" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		open_world();
		tell_pod("a", "1", "Pending", texts[i], BOUND("allocating"));
		if (!begins(allocate(7), "no: "))
			fail_msg("%s: %s", texts[i], allocate(7));
		assert_int_equal(claims_count(w.claims), 0);
		assert_non_null(strstr(fake_requests[0].body, "\"hami.io/bind-phase\":\"failed\""));
		close_world();
	}
}

static void an_answer_that_was_not_made(void **state)
{
	struct claim c = { .number = 7, .pod_uid = "uid-a", .container = "c0" };

	(void)state;
	open_world();
	tell_pod("a", "1", "Pending", A ",NVIDIA,1000,30:;", BOUND("allocating"));
	hami_classic_answered(classic, &c, false);
	assert_non_null(strstr(fake_requests[0].body, "\"hami.io/bind-phase\":\"failed\""));
	assert_int_equal(figures().answers, 0);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_annotation_s_part),
		TEST(asked_again),
		TEST(a_lock_that_names_nobody_we_know),
		TEST(the_lock_s_pod),
		TEST(an_answer_that_went_to_another),
		TEST(refused_for_good),
		TEST(an_answer_that_was_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
