/* Rounds of cleaning up, over records, a checkpoint and folders of the test's own; which containers run is what the
 * test says (ld --wrap). */
#include "agent/container/reconcile.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/container/binding.h"
#include "agent/processes/holders.h"
#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "unit/agent/agent_node.h"

#define A "GPU-0::0"
#define B "GPU-0::1"
#define Q(x) "\"" x "\""
#define LATE(n) "hami.io/vgpu=v." #n

static struct agent_node node;
static struct loop *loop;
static uint64_t alive, gone; /* the number that runs; whose pod left the list; 0: none */
static bool sighted;

bool __wrap_sight_of_node(const char *proc, const char *kubelet_socket);
int __wrap_holders_scan(const char *proc, struct holders **out, struct hm_err *e);
bool __wrap_holders_mounted(const struct holders *h, const char *host_path);
void __wrap_holders_free(struct holders *h);
bool __wrap_pod_names_is_gone(const struct pod_names *n, uint64_t number);
bool __wrap_pods_synced(const struct pods *p);
const struct pod_view *__wrap_pods_find(const struct pods *p, const char *uid);

bool __wrap_sight_of_node(const char *proc, const char *kubelet_socket)
{
	(void)proc, (void)kubelet_socket;
	return sighted;
}

int __wrap_holders_scan(const char *proc, struct holders **out, struct hm_err *e)
{
	(void)proc;
	*out = malloc(1);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "holders");
}

bool __wrap_holders_mounted(const struct holders *h, const char *host_path)
{
	assert_non_null(h);
	return alive != 0 && strcmp(host_path, agent_path_alloc(&node.paths, alive, "usage").s) == 0;
}

void __wrap_holders_free(struct holders *h)
{
	free(h);
}

bool __wrap_pod_names_is_gone(const struct pod_names *n, uint64_t number)
{
	(void)n;
	return number == gone;
}

/* What the API server told: nothing yet, or of one pod. */
static bool synced;
static const struct pod_view *told;

bool __wrap_pods_synced(const struct pods *p)
{
	(void)p;
	return synced;
}

const struct pod_view *__wrap_pods_find(const struct pods *p, const char *uid)
{
	(void)p;
	return told != NULL && strcmp(told->uid, uid) == 0 ? told : NULL;
}

/* ---- */

static int make(struct reconcile **out, struct hm_err *e)
{
	const struct reconcile_config config = {
		.paths = &node.paths,
		.resource = "hami.com/vgpu",
		.claims = node.claims,
		.counter = node.counter,
		.pending = node.pending,
		.pods = (const struct pods *)&node,
	};

	return reconcile_new(loop, &config, out, e);
}

static int setup(void **state)
{
	struct hm_err e;

	fast = 300;
	fast_moved_ms = alive = gone = 0;
	sighted = true;
	synced = false;
	told = NULL;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	if (temp_setup(state) < 0)
		return -1;
	node_setup(&node);
	return loop_new(&loop, &e);
}

static int teardown(void **state)
{
	node_teardown(&node);
	loop_free(HM_STEAL(loop));
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static void open_node(void)
{
	struct hm_err e;

	if (node_open(&node, &e) < 0)
		fail_msg("%s", e.msg);
}

#define CLASSIC(number) "@" #number "@"

/* base64 of an Allocate answer's mount of the usage folder of this number. */
static void add_classic(struct str *out, uint64_t number)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *inside = "/run/hami-vgpu/usage", *host = agent_path_alloc(&node.paths, number, "usage").s;
	unsigned char bytes[256];
	size_t n = (size_t)snprintf((char *)bytes, sizeof bytes, "\x12%c\x0a%c%s\x12%c%s",
				    (int)(strlen(inside) + strlen(host) + 4), (int)strlen(inside), inside,
				    (int)strlen(host), host);

	/* Unknown fields (15, of length 0) until no padding is needed. */
	while (n % 3 != 0) {
		bytes[n++] = 0x7a;
		bytes[n++] = 0;
	}
	for (size_t i = 0; i < n; i += 3) {
		unsigned v = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			str_addc(out, digits[v >> shift & 63]);
	}
}

static void write_checkpoint(const char *entries)
{
	hm_auto_str text = { 0 };
	const char *mark = strchr(entries, '@');

	str_add(&text, "{\"Data\":{\"PodDeviceEntries\":[");
	str_add_n(&text, entries, mark != NULL ? (size_t)(mark - entries) : strlen(entries));
	if (mark != NULL) {
		add_classic(&text, (uint64_t)(mark[1] - '0'));
		str_add(&text, mark + 3);
	}
	str_add(&text, "],\"RegisteredDevices\":{}},\"Checksum\":1}");
	temp_write("kubelet_internal_checkpoint", str_text(&text));
}

/* What a started container has: claim, folder, spec (late). */
static void put_whole(struct claim c)
{
	uint64_t number = c.number;
	bool late = c.cdi[0] != '\0';
	struct hm_err e;

	put_claim(node.claims, c);
	if (file_mkdirs(agent_path_alloc(&node.paths, number, "usage").s, 0755, &e) < 0 ||
	    (late && file_replace(agent_path_spec(&node.paths, number).s, "{}", 2, 0644, &e) < 0))
		fail_msg("%s", e.msg);
}

static void rounds(unsigned n)
{
	hm_auto(reconcile) *r = NULL;
	struct hm_err e;

	assert_int_equal(make(&r, &e), 0);
	fast_run(loop, 200 + RECONCILE_EVERY_MS * (n - 1) + RECONCILE_EVERY_MS / 2);
}

static bool is_ended(const void *arg)
{
	(void)arg;
	return claims_find(node.claims, 5) == NULL;
}

static void until_ended(void)
{
	hm_auto(reconcile) *r = NULL;
	struct hm_err e;

	assert_int_equal(make(&r, &e), 0);
	assert_true(fast_until(loop, is_ended, NULL));
}

/* ---- */

/* A device id that is none, of whatever resource. */
#define ODD(resource)                                                                                                  \
	"{\"PodUID\":\"p9\",\"ContainerName\":\"c9\",\"ResourceName\":\"" resource                                     \
	"\",\"DeviceIDs\":{\"0\":[\"a b\"]},\"AllocResp\":null}"

static void a_claim_goes_once_nothing_holds_it(void **state)
{
	static const struct {
		const char *entries, *cdi;
		bool alive, gone, blind, kept;
	} rows[] = {
		{ ENTRY("p1", "c5", Q(A), CDI_5), LATE(5), false, false, false, true },
		{ ENTRY("p1", "c5", Q(A), CDI_5), LATE(5), false, true, false, false },
		{ ENTRY("p1", "c5", Q(A), CDI_5), LATE(5), true, true, false, true },
		{ ENTRY("p1", "c5", Q(A), CDI_6), LATE(5), false, false, false, false },
		{ ENTRY("p1", "c5", Q(A), CDI_6), LATE(5), true, false, false, true },
		{ ENTRY("p1", "c5", Q(A), CDI_6), LATE(5), false, false, true, true },
		/* classic: whom the claim was thought to be for is not asked */
		{ ENTRY("p1", "c5", Q(A), CLASSIC(5)), "", false, false, false, true },
		{ ENTRY("p2", "c5", Q(A), CLASSIC(5)), "", false, false, false, true },
		{ ENTRY("p1", "c5", Q(A), CLASSIC(6)), "", false, false, false, false },
		{ ENTRY("p1", "c5", Q(A), NO_CDI), "", false, false, false, false },
		{ ENTRY("p1", "c5", Q(A), USAGE_5), "", false, false, false, false },
		{ "", LATE(5), false, false, false, false },
		{ ODD("other.com/x"), LATE(5), false, false, false, false },
		{ ODD("other.com/x") "," ENTRY("p1", "c5", Q(A), CDI_5), LATE(5), false, false, false, true },
		{ ODD("hami.com/vgpu"), LATE(5), false, false, false, true },
		{ ODD("nvidia.com/mig-1g.5gb"), LATE(5), false, false, false, true },
	};

	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		open_node();
		put_whole(make_claim(5, "p1", rows[i].cdi, A, NULL));
		write_checkpoint(rows[i].entries);
		alive = rows[i].alive ? 5 : 0;
		gone = rows[i].gone ? 5 : 0;
		sighted = !rows[i].blind;
		fast_forget_log();
		if (rows[i].kept)
			rounds(4);
		else
			until_ended();
		if ((claims_find(node.claims, 5) != NULL) != rows[i].kept ||
		    temp_exists("state/alloc/5") != rows[i].kept)
			fail_msg("row %zu: %s", i, fast_log);
		assert_int_equal(temp_exists("cdi/hami-vgpu-v.5.json"), rows[i].kept && rows[i].cdi[0] != '\0');
		assert_int_equal(fast_said("cannot see whether containers run"), rows[i].blind);
		assert_int_equal(binding_remove(&node.paths, node.claims, 5, &e), 0);
		node_close(&node);
	}
}

/* The kubelet still lists it; our own watch says that its pod is over. */
static void a_pod_that_is_over_by_our_watch(void **state)
{
	static const struct {
		const char *uid; /* told; NULL: none */
		bool synced, terminal, classic, alive, kept;
	} rows[] = {
		{ NULL, true, false, false, false, false },    { NULL, false, false, false, false, true },
		{ NULL, true, false, false, true, true },      { NULL, true, false, true, false, true },
		{ "p1", true, false, false, false, true },     { "p1", true, true, false, false, false },
		{ "other", true, false, false, false, false },
	};
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct pod_view v = { .terminal = rows[i].terminal };

		snprintf(v.uid, sizeof v.uid, "%s", rows[i].uid != NULL ? rows[i].uid : "");
		open_node();
		put_whole(make_claim(5, "p1", rows[i].classic ? "" : LATE(5), A, NULL));
		write_checkpoint(rows[i].classic ? ENTRY("p1", "c5", Q(A), CLASSIC(5))
						 : ENTRY("p1", "c5", Q(A), CDI_5));
		alive = rows[i].alive ? 5 : 0;
		synced = rows[i].synced;
		told = rows[i].uid != NULL ? &v : NULL;
		if (rows[i].kept)
			rounds(4);
		else
			until_ended();
		if ((claims_find(node.claims, 5) != NULL) != rows[i].kept)
			fail_msg("row %zu: %s", i, fast_log);
		assert_int_equal(binding_remove(&node.paths, node.claims, 5, &e), 0);
		node_close(&node);
	}
}

/* An Allocate's answer reaches the checkpoint a moment after it was given: one round without it is no end. */
static void one_round_is_not_enough(void **state)
{
	(void)state;
	open_node();
	put_whole(make_claim(5, "p1", LATE(5), A, NULL));
	write_checkpoint("");
	fast = 5;
	rounds(1);
	assert_non_null(claims_find(node.claims, 5));
	until_ended();
}

static void a_checkpoint_that_cannot_be_read_ends_nobody(void **state)
{
	(void)state;
	open_node();
	put_whole(make_claim(5, "p1", LATE(5), A, NULL));
	temp_write("kubelet_internal_checkpoint", "{torn");
	rounds(4);
	assert_non_null(claims_find(node.claims, 5));
	assert_int_equal(fast_said("checkpoint cannot be read"), 1);
	unlink(temp_path("kubelet_internal_checkpoint")); /* a kubelet that has lost it: what runs is seen */
	until_ended();
}

static void what_has_no_claim_goes_at_once(void **state)
{
	struct hm_err e;

	(void)state;
	open_node();
	write_checkpoint(ENTRY("p1", "c6", Q(A), CDI_6));
	for (uint64_t n = 5; n < 8; n++)
		if (file_mkdirs(agent_path_alloc(&node.paths, n, "usage").s, 0755, &e) < 0)
			fail_msg("%s", e.msg);
	temp_write("cdi/hami-vgpu-v.9.json", "{}");
	temp_write("cdi/nvidia.json", "{}");
	alive = 7;
	rounds(1);
	assert_false(temp_exists("state/alloc/5"));
	assert_true(temp_exists("state/alloc/6")); /* the kubelet lists it */
	assert_true(temp_exists("state/alloc/7")); /* it runs */
	assert_false(temp_exists("cdi/hami-vgpu-v.9.json"));
	assert_true(temp_exists("cdi/nvidia.json"));
}

static void allocate_calls_are_remembered_for_a_minute(void **state)
{
	static const char *const ids[] = { A };
	struct hm_err e;
	uint64_t now;

	(void)state;
	fast = 20;
	now = __wrap_loop_now_ms(loop);
	open_node();
	assert_int_equal(pending_add(node.pending, 5, ids, 1, now, &e), 0);
	assert_int_equal(pending_add(node.pending, 6, ids, 1, now, &e), 0);
	write_checkpoint(ENTRY("p1", "c6", Q(A), CDI_6));
	rounds(2);
	assert_int_equal(pending_count(node.pending), 2);
	fast_moved_ms += RECONCILE_PENDING_MS;
	rounds(1);
	assert_int_equal(pending_count(node.pending), 1);
	assert_int_equal(pending_at(node.pending, 0)->number, 6); /* the kubelet lists it */
}

static void the_largest_number_anywhere_counts(void **state)
{
	static const struct {
		const char *file, *entries;
		uint64_t max;
	} rows[] = {
		{ NULL, "", 0 },
		{ "state/claims/12", "", 12 },
		{ "state/alloc/13", "", 13 },
		{ "cdi/hami-vgpu-v.14.json", "", 14 },
		{ "cdi/hami-vgpu-v.99.jsonx", ENTRY("p", "c", Q(A), CDI_6), 6 },
		{ "cdi/nvidia-99.json", ENTRY("p", "c", Q(A), CDI_OTHER), 0 },
		{ NULL, ODD("other.com/x") "," ENTRY("p", "c", Q(A), CDI_6), 6 },
		{ NULL, ODD("hami.com/vgpu") "," ENTRY("p", "c", Q(A), CDI_6), 0 }, /* said, below */
		{ "state/claims/99.tmp-1", "", 0 },
		{ "state/claims/99999999999999999999", "", 0 },
	};
	struct hm_err e;

	(void)state;
	assert_int_equal(file_mkdirs(node.paths.claims.s, 0755, &e), 0);
	assert_int_equal(file_mkdirs(node.paths.alloc.s, 0755, &e), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		if (rows[i].file != NULL)
			temp_write(rows[i].file, "");
		write_checkpoint(rows[i].entries);
		assert_int_equal(reconcile_max_number(&node.paths, "hami.com/vgpu"), rows[i].max);
		if (rows[i].file != NULL)
			unlink(temp_path(rows[i].file));
	}
	assert_int_equal(fast_said("may be given again"), 1);
}

static void left_over_files_of_a_write_go(void **state)
{
	static const struct {
		const char *file;
		bool kept;
	} rows[] = {
		{ "state/counter.tmp-12", false }, { "state/counter", true },
		{ "state/claims/7.tmp-3", false }, { "state/claims/7.tmp-x", true },
		{ "state/claims/7.tmp-", true },   { "cdi/hami-vgpu-v.7.json.tmp-9", false },
		{ "cdi/nvidia.json.tmp-9", true }, /* somebody else's */
	};
	struct hm_err e;

	(void)state;
	assert_int_equal(file_mkdirs(node.paths.claims.s, 0755, &e), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		temp_write(rows[i].file, "");
	reconcile_remove_temporaries(&node.paths);
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (temp_exists(rows[i].file) != rows[i].kept)
			fail_msg("%s", rows[i].file);
}

/* Whatever cannot be had once: who runs or is listed keeps all, and who ended loses all, in the end. */
static int scenario(void *arg)
{
	struct reconcile *r = NULL;
	struct hm_err e;
	int result = -1;

	(void)arg;
	if (node_open(&node, &e) == 0 && make(&r, &e) == 0) {
		fast_run(loop, 200 + 4 * RECONCILE_EVERY_MS);
		result = 0;
	}
	reconcile_free(r);
	node_close(&node);
	return result;
}

/* The records are on disk: each run of the scenario reads them anew. */
static void sweep(void **state)
{
	struct sweep_result r;

	(void)state;
	open_node();
	put_whole(make_claim(4, "p4", LATE(4), B, NULL)); /* ended */
	put_whole(make_claim(5, "p1", LATE(5), A, NULL)); /* listed */
	put_whole(make_claim(7, "p7", LATE(7), A, NULL)); /* runs */
	node_close(&node);
	write_checkpoint(ENTRY("p1", "c5", Q(A), CDI_5));
	alive = 7;
	r = sweep_run(scenario, NULL);
	assert_false(r.failed);
	assert_true(r.allocations > 15);
	if (r.leaked > 0)
		fail_msg("%zu blocks leaked when allocation %zu failed", r.leaked, r.leaked_at);
	open_node();
	assert_null(claims_find(node.claims, 4));
	assert_non_null(claims_find(node.claims, 5));
	assert_non_null(claims_find(node.claims, 7));
	assert_true(temp_exists("state/alloc/5"));
	assert_true(temp_exists("state/alloc/7"));
	assert_true(temp_exists("cdi/hami-vgpu-v.5.json"));
	assert_true(temp_exists("cdi/hami-vgpu-v.7.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(a_claim_goes_once_nothing_holds_it),
		TEST(a_pod_that_is_over_by_our_watch),
		TEST(one_round_is_not_enough),
		TEST(a_checkpoint_that_cannot_be_read_ends_nobody),
		TEST(what_has_no_claim_goes_at_once),
		TEST(allocate_calls_are_remembered_for_a_minute),
		TEST(the_largest_number_anywhere_counts),
		TEST(left_over_files_of_a_write_go),
		TEST(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
