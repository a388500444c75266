#include "agent/claims/prestart.h"

#include <stdio.h>
#include <string.h>

#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"

#define A "GPU-0::0"
#define B "GPU-0::1"
#define Q(x) "\"" x "\""

static struct claims *claims;
static struct pending *pending;

static int setup(void **state)
{
	struct hm_err e;

	if (temp_setup(state) < 0 || claims_open(temp_path("claims"), &claims, &e) < 0)
		return -1;
	pending = pending_new();
	return pending != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	claims_free(claims);
	pending_free(pending);
	return temp_teardown(state);
}

static bool others_start;

static struct prestart_facts facts(const struct checkpoint *c)
{
	return (struct prestart_facts) { c, "it is torn", "hami.com/vgpu", "/s/alloc", others_start, claims, pending };
}

/* "number/pod/container ..." of what prestart_find answers for A. */
static const char *find(const struct checkpoint *c)
{
	static const char *const ids[] = { A };
	static char out[1024];
	struct prestart_target targets[PRESTART_MAX_TARGETS];
	struct prestart_facts f = facts(c);
	size_t count, at = 0;
	struct hm_err e;

	if (prestart_find(&f, ids, 1, targets, &count, &e) < 0) {
		snprintf(out, sizeof out, "%s", e.msg);
		return out;
	}
	out[0] = '\0';
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(out + at, sizeof out - at, "%s%llu/%s/%s", i > 0 ? " " : "",
				       (unsigned long long)targets[i].number, targets[i].pod_uid, targets[i].container);
	return out;
}

static void the_checkpoints_names_decide(void **state)
{
	static const struct {
		const char *entries, *want;
	} rows[] = {
		{ ENTRY("p1", "main", Q(A), CDI_5), "5/p1/main" },
		/* one pod, one set: init and main container */
		{ ENTRY("p1", "init", Q(A), CDI_5) "," ENTRY("p1", "main", Q(A), CDI_6), "5/p1/init 6/p1/main" },
		/* whole sets are matched, not single ids */
		{ ENTRY("p1", "init", Q(A) "," Q(B), CDI_5) "," ENTRY("p1", "main", Q(A), CDI_6), "6/p1/main" },
		/* the same name twice is one number */
		{ ENTRY("p1", "x", Q(A), CDI_5) "," ENTRY("p1", "y", Q(A), CDI_5), "5/p1/x" },
		{ ENTRY("p1", "main", Q(B), CDI_5),
		  "not now: cannot tell which container gets GPU-0::0: the kubelet's checkpoint has none with exactly "
		  "these devices; if this pod was allocated by another plugin, delete it" },
		{ ENTRY("p1", "main", Q(A), CDI_OTHER),
		  "not now: cannot tell which container gets GPU-0::0: the kubelet's checkpoint has none with exactly "
		  "these devices; if this pod was allocated by another plugin, delete it" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(checkpoint) *c = make_checkpoint(rows[i].entries);
		const char *got = find(c);

		/* The code's own words are core/err's business. */
		if (strstr(rows[i].want, "cannot tell") != NULL)
			assert_string_equal(strstr(got, "cannot tell"), strstr(rows[i].want, "cannot tell"));
		else
			assert_string_equal(got, rows[i].want);
	}
}

/* Classic binding: the answer's mounts carry the number, whoever the claim is thought to be for. */
static void the_usage_folder_s_mount_is_as_good(void **state)
{
	hm_auto(checkpoint) *c = make_checkpoint(ENTRY("p1", "init", Q(A), USAGE_5) "," ENTRY(
		"p2", "x", Q(B), USAGE_5) "," ENTRY("p1", "main", Q(A), USAGE_ELSEWHERE));
	uint64_t number;
	bool classic;

	(void)state;
	put_claim(claims, make_claim(5, "p2", "", A, NULL));
	assert_string_equal(find(c), "5/p1/init");
	assert_true(prestart_is_listed(c, "/s/alloc", 5));
	assert_false(prestart_is_listed(c, "/s/alloc", 6));
	assert_false(prestart_entry_number(&c->entries[0], "/s", &number, &classic));
	assert_false(prestart_entry_number(&c->entries[0], "/s/all", &number, &classic));
	assert_false(prestart_entry_number(&c->entries[0], "/s/alloc/5", &number, &classic));
}

/* HAMi's plugin was there before: its answers have no number of ours. */
static void another_plugin_s_containers_start(void **state)
{
	hm_auto(checkpoint) *other = make_checkpoint(ENTRY("p1", "main", Q(A), CDI_OTHER));
	hm_auto(checkpoint) *both =
		make_checkpoint(ENTRY("p1", "init", Q(A), NO_CDI) "," ENTRY("p1", "main", Q(A), CDI_5));
	hm_auto(checkpoint) *nobody = make_checkpoint(ENTRY("p1", "main", Q(B), CDI_OTHER));

	(void)state;
	others_start = true;
	put_claim(claims, make_claim(4, "p2", "hami.io/vgpu=v.4", A, NULL)); /* of a container that has ended */
	assert_string_equal(find(other), "");
	assert_string_equal(find(both), "5/p1/main");
	others_start = false;
	assert_string_equal(find(other), "4/p2/c4");
	others_start = true;
	assert_string_equal(find(nobody), "4/p2/c4");
	others_start = false;
}

static void without_a_checkpoint_what_is_remembered_counts(void **state)
{
	struct hm_err e;

	(void)state;
	assert_non_null(strstr(find(NULL), "it is torn; and no Allocate call for it is remembered"));
	assert_int_equal(pending_add(pending, 8, (const char *[]) { A }, 1, 0, &e), 0);
	assert_int_equal(pending_add(pending, 9, (const char *[]) { B }, 1, 0, &e), 0);
	put_claim(claims, make_claim(4, "p2", "hami.io/vgpu=v.4", A, NULL));
	assert_string_equal(find(NULL), "8// 4/p2/c4");
}

/* ---- holders */

static uint64_t living; /* the number that `alive` says lives; 0: none */
static unsigned asked;

static bool alive(const struct claim *c, void *arg)
{
	assert_ptr_equal(arg, &living);
	asked++;
	return c->number == living;
}

static int check(const struct checkpoint *c, const char *pod, struct hm_err *e)
{
	struct prestart_target target = { .number = 9 };
	struct prestart_facts f = facts(c);

	snprintf(target.pod_uid, sizeof target.pod_uid, "%s", pod);
	e->msg[0] = '\0';
	asked = 0;
	return prestart_check_holders(&f, (const char *[]) { B, A }, 2, &target, 1, alive, &living, e);
}

static void a_live_holder_of_another_pod_is_named(void **state)
{
	hm_auto(checkpoint) *none = make_checkpoint("");
	hm_auto(checkpoint) *listed = make_checkpoint(ENTRY("p1", "main", Q(A), CDI_5));
	struct claim c = make_claim(5, "p1", "hami.io/vgpu=v.5", A, NULL);
	struct hm_err e;

	(void)state;
	snprintf(c.pod_name, sizeof c.pod_name, "train");
	snprintf(c.pod_namespace, sizeof c.pod_namespace, "ns");
	put_claim(claims, c);
	put_claim(claims, make_claim(9, "p2", "hami.io/vgpu=v.9", A, B)); /* the target's own */
	living = 5;
	assert_int_equal(check(none, "p2", &e), -HM_EAGAIN);
	assert_string_equal(e.msg, "slot GPU-0::0 is still held by pod ns/train (UID p1), container c5, vGPU 5; this "
				   "container starts when that one has ended");
	living = 0;
	assert_int_equal(check(none, "p2", &e), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(check(NULL, "p2", &e), 0);
	/* The kubelet itself says that it is held: nothing else is asked. */
	assert_int_equal(check(listed, "p2", &e), -HM_EAGAIN);
	assert_int_equal(asked, 0);
	/* The same pod: a main container with a finished init container's device. */
	living = 5;
	assert_int_equal(check(listed, "p1", &e), 0);
}

static void other_slots_and_ended_claims_do_not_hold(void **state)
{
	hm_auto(checkpoint) *none = make_checkpoint("");
	struct claim ended = make_claim(5, "p1", "", A, NULL);
	struct hm_err e;

	(void)state;
	ended.state = CLAIM_ENDED;
	put_claim(claims, ended);
	put_claim(claims, make_claim(6, "p1", "", "GPU-0::2", NULL));
	living = 5;
	assert_int_equal(check(none, "p2", &e), 0);
	assert_int_equal(asked, 0);
}

static void only_names_of_our_form_have_a_number(void **state)
{
	static const struct {
		const char *name;
		bool ok;
		uint64_t number;
	} rows[] = {
		{ "hami.io/vgpu=v.1", true, 1 },   { "hami.io/vgpu=v.18446744073709551616", false, 0 },
		{ "hami.io/vgpu=v.", false, 0 },   { "hami.io/vgpu=v.1/../..", false, 0 },
		{ "hami.io/vgpu=v.-1", false, 0 }, { "hami.io/vgpu=g0-0", false, 0 },
		{ "nvidia.com/gpu=0", false, 0 },  { "", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		uint64_t n = 0;

		assert_int_equal(prestart_parse_name(rows[i].name, &n), rows[i].ok);
		if (rows[i].ok)
			assert_int_equal(n, rows[i].number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(the_checkpoints_names_decide),          TEST(the_usage_folder_s_mount_is_as_good),
		TEST(another_plugin_s_containers_start),     TEST(without_a_checkpoint_what_is_remembered_counts),
		TEST(a_live_holder_of_another_pod_is_named), TEST(other_slots_and_ended_claims_do_not_hold),
		TEST(only_names_of_our_form_have_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
