#include "agent/cluster/pod_names.h"

#include <string.h>

#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"

static const char *name_of(const struct claims *s, uint64_t number)
{
	static char text[800];
	const struct claim *c = claims_find(s, number);

	snprintf(text, sizeof text, "%s/%s/%s", c->pod_namespace, c->pod_name, c->container);
	return text;
}

static void names_go_by_whole_sets_and_container(void **state)
{
	static const char *const a[] = { "GPU-0::0" }, *const b[] = { "GPU-0::1" };
	const struct pod_resources_container list[] = {
		{ "ns", "one", "c1", a, 1 },
		{ "ns", "two", "x", b, 1 },
	};
	struct claim unknown = make_claim(5, "u2", "", "GPU-0::1", NULL);
	struct claims *s = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(claims_open(temp_path("claims"), &s, &e), 0);
	put_claim(s, make_claim(1, "u1", "", "GPU-0::0", NULL));
	put_claim(s, make_claim(2, "u1", "", "GPU-0::0", "GPU-0::2")); /* its init container: never listed */
	put_claim(s, make_claim(3, "u3", "", "GPU-0::0", NULL));       /* another container's name */
	put_claim(s, make_claim(4, "", "", "GPU-0::3", NULL));
	unknown.container[0] = '\0';
	put_claim(s, unknown);
	pod_names_apply(s, list, HM_COUNT(list));
	assert_string_equal(name_of(s, 1), "ns/one/c1");
	assert_string_equal(name_of(s, 2), "ns/one/c2");
	assert_string_equal(name_of(s, 3), "//c3");
	assert_string_equal(name_of(s, 4), "//c4");
	assert_string_equal(name_of(s, 5), "ns/two/x");
	claims_free(s);
	assert_int_equal(claims_open(temp_path("claims"), &s, &e), 0);
	assert_string_equal(name_of(s, 1), "ns/one/c1"); /* on disk too */
	claims_free(s);
}

/* One claim of a named pod, and what lists make of it. */
struct watch {
	struct loop *loop;
	struct claims *claims;
	struct pod_names *names;
	uint64_t now_ms;
};

static struct watch start_watch(void)
{
	struct watch w = { .now_ms = 1000 };
	struct claim c = make_claim(1, "u1", "", "GPU-0::0", NULL);
	struct hm_err e;

	snprintf(c.pod_namespace, sizeof c.pod_namespace, "ns");
	snprintf(c.pod_name, sizeof c.pod_name, "one");
	assert_int_equal(loop_new(&w.loop, &e), 0);
	assert_int_equal(claims_open(temp_path("claims"), &w.claims, &e), 0);
	put_claim(w.claims, c);
	assert_int_equal(pod_names_new(w.loop, "none.sock", "hami.com/vgpu", w.claims, &w.names, &e), 0);
	return w;
}

static void end_watch(struct watch *w)
{
	pod_names_free(w->names);
	claims_free(w->claims);
	loop_free(w->loop);
}

static void make_it_new(struct watch *w)
{
	struct claim c;
	struct hm_err e;

	assert_int_equal(claim_copy(claims_at(w->claims, 0), &c, &e), 0);
	c.created_ms = clock_wall_ms();
	put_claim(w->claims, c);
}

/* "1": a list with its pod, "-": one where that has no device, "2": with another pod alone, "0": an empty one, "r":
 * another kubelet, "m": minutes go by, "n": its claim has just been made. */
static bool is_gone_after(struct watch *w, const char *lists)
{
	static const char *const a[] = { "GPU-0::0" };
	const struct pod_resources_container one = { "ns", "one", "c1", a, 1 }, two = { "ns", "two", "c1", a, 1 };
	const struct pod_resources_container bare[] = { two, { "ns", "one", "c1", a, 0 } };

	for (; *lists != '\0'; lists++, w->now_ms += POD_NAMES_EVERY_MS) {
		if (*lists == 'r')
			pod_names_new_kubelet(w->names);
		else if (*lists == 'm')
			w->now_ms += POD_NAMES_EMPTY_MS;
		else if (*lists == 'n')
			make_it_new(w);
		else if (*lists == '-')
			pod_names_take(w->names, bare, HM_COUNT(bare), w->now_ms);
		else
			pod_names_take(w->names, *lists == '1' ? &one : &two, *lists == '0' ? 0 : 1, w->now_ms);
	}
	return pod_names_is_gone(w->names, 1);
}

static void an_empty_list_is_no_proof_of_an_end(void **state)
{
	static const struct {
		const char *lists;
		bool gone;
	} rows[] = {
		{ "", false },     { "1", false },       { "12", false },     { "122", true },  { "1212", false },
		{ "22", true },    { "100", true },      { "1020", true },    { "00", false }, /* the agent started */
		{ "0000", false }, { "1r0000", false },  { "10r0r0", false }, /* a kubelet without the API server */
		{ "12r2", false }, { "1r01", false },    { "1r0100", true },  { "0m00", true }, { "0m0", false },
		{ "02m20", true }, { "1r0mr00", false }, { "n2222", false }, /* a pod of an init container: on no list,
										and not there yet */
		{ "n122", true },  { "22-", false },     { "-22", true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct watch w = start_watch();
		bool gone = is_gone_after(&w, rows[i].lists);

		end_watch(&w);
		if (gone != rows[i].gone)
			fail_msg("\"%s\": %d", rows[i].lists, gone);
	}
}

/* The kubelet gives the claim's device to another pod, and its checkpoint does not list the claim. */
static void a_device_that_the_kubelet_gives_on_is_free_if_it_freed_it(void **state)
{
	static const struct {
		const char *lists;
		enum pod_life life;
	} rows[] = {
		{ "1", POD_IS_GONE },  /* in its book until just now */
		{ "1-", POD_IS_GONE }, /* older kubelets list what has ended; this one took its device away */
		{ "1r-", POD_LIVES },  /* it forgot */
		{ "--", POD_LIVES },     { "2", POD_LIVES },    { "22", POD_IS_GONE }, { "1r2", POD_LIVES },
		{ "1r22", POD_IS_GONE }, { "r1", POD_IS_GONE }, /* another pod of the same name */
		{ "n22", POD_LIVES },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct watch w = start_watch();
		enum pod_life life;

		assert_int_equal(pod_names_life(w.names, claims_find(w.claims, 1)),
				 POD_LIVES); /* nobody was asked yet */
		(void)is_gone_after(&w, rows[i].lists);
		life = pod_names_life(w.names, claims_find(w.claims, 1));
		end_watch(&w);
		if (life != rows[i].life)
			fail_msg("\"%s\": %d", rows[i].lists, (int)life);
	}
}

static void a_pod_that_no_list_named_is_not_seen(void **state)
{
	struct watch w = start_watch();

	(void)state;
	put_claim(w.claims, make_claim(2, "u2", "", "GPU-0::1", NULL));
	(void)is_gone_after(&w, "22");
	assert_int_equal(pod_names_life(w.names, claims_find(w.claims, 2)), POD_UNSEEN);
	end_watch(&w);
}

static void without_a_list_nothing_is_seen(void **state)
{
	struct watch w = start_watch();
	struct hm_err e;

	(void)state;
	assert_int_equal(pod_names_life(w.names, claims_find(w.claims, 1)), POD_LIVES);
	for (int i = 0; i < 100 && pod_names_life(w.names, claims_find(w.claims, 1)) == POD_LIVES; i++)
		assert_int_equal(loop_run_once(w.loop, 10, &e), 0);
	assert_int_equal(pod_names_life(w.names, claims_find(w.claims, 1)), POD_UNSEEN);
	end_watch(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_go_by_whole_sets_and_container, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(a_device_that_the_kubelet_gives_on_is_free_if_it_freed_it, temp_setup,
						temp_teardown),
		cmocka_unit_test_setup_teardown(a_pod_that_no_list_named_is_not_seen, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(without_a_list_nothing_is_seen, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(an_empty_list_is_no_proof_of_an_end, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
