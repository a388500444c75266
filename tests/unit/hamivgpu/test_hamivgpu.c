#include "hamivgpu/hamivgpu.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "abi/nvml.h"
#include "core/macros.h"
#include "harness/sweep.h"
#include "unit/hamivgpu/made_node.h"

static void test_cards(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	const struct hamivgpu_card *c;

	(void)state;
	made_begin(&n, 2);
	made_node_file(&n);
	n.fake->cards[1].busy = 73;
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_driver_state(h)->code, HAMIVGPU_OK);
	assert_int_equal(hamivgpu_agent_state(h)->code, HAMIVGPU_OK);
	assert_string_equal(hamivgpu_node(h)->driver_version, "550.54.15");
	assert_int_equal(hamivgpu_node(h)->cuda_version, 12040);
	assert_string_equal(hamivgpu_node(h)->slicing, "static");
	assert_string_equal(hamivgpu_node(h)->binding, "late");
	assert_int_equal(hamivgpu_node(h)->slots_per_card, 4);
	assert_int_equal(hamivgpu_node(h)->agent_pid, 77);
	assert_int_equal(hamivgpu_card_count(h), 2);
	c = hamivgpu_card(h, 1);
	assert_string_equal(c->uuid, MADE_GPU(1));
	assert_string_equal(c->model, "NVIDIA L40S");
	assert_int_equal(c->index, 1);
	assert_int_equal(c->memory_total, 46068ull << 20);
	assert_int_equal(c->memory_used, 1000ull << 20);
	assert_int_equal(c->reserved, 500ull << 20);
	assert_int_equal(c->busy_percent, 73);
	assert_int_equal(c->slots, 4);
	assert_int_equal(c->slots_used, 0);
	assert_int_equal(c->slot_memory, 11945377792);
	assert_null(hamivgpu_card(h, 2));
	assert_int_equal(hamivgpu_problem_count(h), 0);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_claims(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	const struct hamivgpu_claim *c;

	(void)state;
	made_begin(&n, 2);
	made_node_file(&n);
	made_claim(&n, 100, "active", "train", 2);
	made_claim(&n, 17, "allocated", "", 1);
	made_claim(&n, 5, "ended", "gone", 1);
	made_region(&n, 100, 7, 300 << 20);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_claim_count(h), 3);
	assert_int_equal(hamivgpu_claim(h, 0)->number, 5);
	assert_string_equal(hamivgpu_claim(h, 1)->state, "allocated");
	assert_int_equal(hamivgpu_claim(h, 1)->usage.code, HAMIVGPU_NOT_FOUND);
	assert_true(hamivgpu_claim(h, 1)->shares[0].memory_used == HAMIVGPU_UNKNOWN);
	c = hamivgpu_claim(h, 2);
	assert_string_equal(c->pod_uid, "uid-100");
	assert_string_equal(c->pod_namespace, "team-a");
	assert_string_equal(c->pod_name, "train");
	assert_string_equal(c->container, "main");
	assert_string_equal(c->cdi, "hami.io/vgpu=v.100");
	assert_int_equal(c->created_ms, 1764447654123);
	assert_int_equal(c->usage.code, HAMIVGPU_OK);
	assert_int_equal(c->share_count, 1);
	assert_int_equal(c->shares[0].card, 0);
	assert_int_equal(c->shares[0].slots, 2);
	assert_int_equal(c->shares[0].first_slot, 1);
	assert_int_equal(c->shares[0].cores, 50);
	assert_int_equal(c->shares[0].memory, 2ull << 30);
	assert_int_equal(c->shares[0].memory_used, 300 << 20);
	assert_int_equal(c->shares[0].memory_peak, 300 << 20);
	assert_int_equal(c->shares[0].refused, 0);
	assert_int_equal(c->shares[0].spilled, 0);
	assert_int_equal(c->shares[0].spilled_bytes, 0);
	assert_int_equal(c->member_count, 1);
	assert_int_equal(c->members[0].pid, 7);
	assert_int_equal(c->members[0].memory_used[0], 300 << 20);
	assert_null(hamivgpu_claim(h, 3));
	/* the ended one's slot is free again */
	assert_int_equal(hamivgpu_card(h, 0)->slots_used, 3);
	assert_int_equal(hamivgpu_card(h, 1)->slots_used, 0);
	hamivgpu_close(h);
	made_end(&n);
}

/* In whatever order the folder has them. */
static void test_claims_are_sorted(void **state)
{
	struct made_node n;
	struct hamivgpu *h;

	(void)state;
	made_begin(&n, 1);
	for (unsigned i = 0; i < 31; i++)
		made_claim(&n, 1 + i * 7 % 31, "ended", "x", 1);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_claim_count(h), 31);
	for (unsigned i = 0; i < 31; i++)
		assert_int_equal(hamivgpu_claim(h, i)->number, i + 1);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_processes(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	const struct hamivgpu_process *p;

	(void)state;
	made_begin(&n, 2);
	made_node_file(&n);
	made_claim(&n, 100, "active", "train", 2);
	made_region(&n, 100, 7, 300 << 20);
	made_region(&n, 100, 9, 50 << 20);
	made_region(&n, 100, 10, 20 << 20); /* ended: its container is in sight and has no such process */
	n.fake->cards[0].compute[0] = (struct fake_process) { 4711, 450 << 20 };
	n.fake->cards[0].compute[1] = (struct fake_process) { 4712, 1 << 20 };
	n.fake->cards[0].compute[2] = (struct fake_process) { 4713, NVML_VALUE_NOT_AVAILABLE };
	n.fake->cards[0].compute_count = 3;
	made_process(&n, 4711, 7, "python3");
	made_process(&n, 4712, 8, "stray (x) y"); /* the same pid namespace, another pid */
	made_process(&n, 4714, 9, "quiet");
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_process_count(h), 4);
	p = hamivgpu_process(h, 0);
	assert_int_equal(p->pid, 4711);
	assert_string_equal(p->name, "python3");
	assert_int_equal(p->card, 0);
	assert_int_equal(p->memory_used, 450 << 20);
	assert_int_equal(p->claim, 0);
	assert_int_equal(p->container_pid, 7);
	p = hamivgpu_process(h, 1);
	assert_string_equal(p->name, "stray (x) y");
	assert_int_equal(p->claim, -1);
	assert_int_equal(p->container_pid, 0);
	p = hamivgpu_process(h, 2); /* /proc knows nothing of it */
	assert_string_equal(p->name, "");
	assert_true(p->memory_used == HAMIVGPU_UNKNOWN);
	p = hamivgpu_process(h, 3); /* in the region, not shown by the driver */
	assert_int_equal(p->pid, 0);
	assert_int_equal(p->container_pid, 9);
	assert_int_equal(p->claim, 0);
	assert_int_equal(p->card, 0);
	assert_int_equal(p->memory_used, 50 << 20);
	assert_null(hamivgpu_process(h, 4));
	hamivgpu_close(h);
	made_end(&n);
}

/* Without the host's pid namespace no container is in sight: what its region says is shown. */
static void test_processes_out_of_sight(void **state)
{
	struct made_node n;
	struct hamivgpu *h;

	(void)state;
	made_begin(&n, 1);
	made_node_file(&n);
	made_claim(&n, 100, "active", "train", 1);
	made_region(&n, 100, 9, 50 << 20);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_process_count(h), 1);
	assert_int_equal(hamivgpu_process(h, 0)->container_pid, 9);
	hamivgpu_close(h);
	made_end(&n);
}

/* Same pid inside, but another start time or namespace: another process. */
static void test_processes_told_apart(void **state)
{
	static const struct {
		const char *file, *text;
		int claim;
	} rows[] = {
		{ NULL, NULL, 0 },
		{ "proc/4711/stat", "4711 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5008 1000 10\n", -1 },
		{ "proc/4711/stat", "noise", 0 }, /* not known: the rest must do */
		{ "proc/4711/status", "NSpid:\t4711\n", -1 },
		{ "proc/4711/status", "NSpid:\t7\t4711\n", -1 },
		{ "proc/4711/status", "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct made_node n;
		struct hamivgpu *h;

		made_begin(&n, 1);
		made_claim(&n, 100, "active", "train", 2);
		made_region(&n, 100, 7, 300 << 20);
		n.fake->cards[0].compute[0] = (struct fake_process) { 4711, 450 << 20 };
		n.fake->cards[0].compute_count = 1;
		made_process(&n, 4711, 7, "python3");
		if (rows[i].file != NULL)
			made_file(&n, rows[i].file, rows[i].text);
		h = made_open(&n, FAKE_NVML);
		if (hamivgpu_process(h, 0)->claim != rows[i].claim)
			fail_msg("row %zu: claim %d", i, hamivgpu_process(h, 0)->claim);
		hamivgpu_close(h);
		made_end(&n);
	}
}

/* A region that leaves start time and namespace open must not take what is another's. */
static void test_a_region_cannot_claim_others_processes(void **state)
{
	static const struct {
		struct process_id says;
		bool proc_is_silent;
		int claim;
	} rows[] = {
		{ { 7, 5007, 4026530000u }, false, 0 },
		{ { 7, 0, 4026530000u }, false, -1 },
		{ { 7, 5007, 1 }, false, -1 },
		{ { 7, 0, 1 }, false, -1 },
		{ { 7, 0, 1 }, true, 0 },
		{ { 8, 0, 1 }, true, -1 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct made_node n;
		struct hamivgpu *h;
		char path[300];

		made_begin(&n, 1);
		made_claim(&n, 100, "active", "train", 2);
		made_region_of(&n, 100, rows[i].says, 300 << 20);
		n.fake->cards[0].compute[0] = (struct fake_process) { 4711, 450 << 20 };
		n.fake->cards[0].compute_count = 1;
		made_process(&n, 4711, 7, "python3");
		snprintf(path, sizeof path, "%s/proc/4711/ns/pid", n.root);
		if (rows[i].proc_is_silent) {
			made_file(&n, "proc/4711/stat", "");
			assert_int_equal(unlink(path), 0);
		}
		h = made_open(&n, FAKE_NVML);
		if (hamivgpu_process(h, 0)->claim != rows[i].claim)
			fail_msg("row %zu: claim %d", i, hamivgpu_process(h, 0)->claim);
		hamivgpu_close(h);
		made_end(&n);
	}
}

static void test_no_driver(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	const struct hamivgpu_card *c;

	(void)state;
	made_begin(&n, 2);
	made_node_file(&n);
	made_claim(&n, 100, "active", "train", 2);
	h = made_open(&n, "/nowhere/libnvidia-ml.so.1");
	assert_int_equal(hamivgpu_driver_state(h)->code, HAMIVGPU_NOT_FOUND);
	assert_non_null(strstr(hamivgpu_driver_state(h)->message, "/nowhere/libnvidia-ml.so.1"));
	assert_int_equal(hamivgpu_agent_state(h)->code, HAMIVGPU_OK);
	assert_int_equal(hamivgpu_card_count(h), 2);
	c = hamivgpu_card(h, 0);
	assert_int_equal(c->index, -1);
	assert_string_equal(c->model, "");
	assert_true(c->memory_total == HAMIVGPU_UNKNOWN);
	assert_int_equal(c->busy_percent, -1);
	assert_int_equal(c->slots_used, 2);
	assert_int_equal(hamivgpu_claim(h, 0)->shares[0].card, 0);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_no_agent(void **state)
{
	struct made_node n;
	struct hamivgpu *h;

	(void)state;
	made_begin(&n, 2);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_driver_state(h)->code, HAMIVGPU_OK);
	assert_int_equal(hamivgpu_agent_state(h)->code, HAMIVGPU_NOT_FOUND);
	assert_non_null(strstr(hamivgpu_agent_state(h)->message, n.state));
	assert_int_equal(hamivgpu_card_count(h), 2);
	assert_int_equal(hamivgpu_card(h, 0)->slots, 0);
	assert_int_equal(hamivgpu_claim_count(h), 0);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_states(void **state)
{
	static const struct {
		int init;
		const char *node;
		int driver, agent;
	} rows[] = {
		{ NVML_ERROR_DRIVER_NOT_LOADED, NULL, HAMIVGPU_NOT_READY, HAMIVGPU_OK },
		{ NVML_ERROR_NO_PERMISSION, NULL, HAMIVGPU_NO_PERMISSION, HAMIVGPU_OK },
		{ NVML_SUCCESS, "hami-vgpu-node 2\nend\n", HAMIVGPU_OK, HAMIVGPU_UNSUPPORTED },
		{ NVML_SUCCESS, "hami-vgpu-node 1\n", HAMIVGPU_OK, HAMIVGPU_BROKEN },
		{ NVML_SUCCESS, "", HAMIVGPU_OK, HAMIVGPU_BROKEN },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct made_node n;
		struct hamivgpu *h;

		made_begin(&n, 1);
		made_node_file(&n);
		made_claim(&n, 100, "active", "train", 1);
		if (rows[i].node != NULL)
			made_file(&n, "state/node", rows[i].node);
		fake_fault(n.fake, "nvmlInit_v2", -1, rows[i].init);
		h = made_open(&n, FAKE_NVML);
		assert_int_equal(hamivgpu_driver_state(h)->code, rows[i].driver);
		assert_int_equal(hamivgpu_agent_state(h)->code, rows[i].agent);
		assert_int_equal(hamivgpu_claim_count(h), 1); /* whatever the node file says */
		hamivgpu_close(h);
		made_end(&n);
	}
}

/* A broken claim is named; files that are no claims, or being replaced, are left alone. */
static void test_problems(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	char path[128];
	bool link = false, number = false, broken = false;

	(void)state;
	made_begin(&n, 2);
	made_node_file(&n);
	made_claim(&n, 1, "active", "good", 1);
	made_file(&n, "state/claims/2",
		  "hami-vgpu-claim 1\n"
		  "number=2\n\x1b[2J=1\n");
	made_file(&n, "state/claims/3.tmp-17", "half");
	made_claim(&n, 4, "active", "other", 1);
	snprintf(path, sizeof path, "%s/claims/4", n.state);
	{
		char to[128];

		snprintf(to, sizeof to, "%s/claims/5", n.state);
		assert_int_equal(rename(path, to), 0);
		snprintf(to, sizeof to, "%s/claims/6", n.state);
		assert_int_equal(symlink("/etc/passwd", to), 0);
		snprintf(to, sizeof to, "%s/claims/7", n.state);
		assert_int_equal(mkfifo(to, 0600), 0);
	}
	fake_fault(n.fake, "nvmlDeviceGetUUID", 1, NVML_ERROR_GPU_IS_LOST);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_claim_count(h), 1);
	assert_int_equal(hamivgpu_problem_count(h), 5);
	assert_string_equal(hamivgpu_problem(h, 0), "GPU 1: nvmlDeviceGetUUID: NVML says GPU is lost (15)");
	for (size_t i = 1; i < 5; i++) {
		const char *text = hamivgpu_problem(h, i);

		link = link || strstr(text, "claims/6: is a link") != NULL;
		number = number || strstr(text, "claims/5: says number 4") != NULL;
		broken = broken || strstr(text, "claims/2: line 3: unknown key \\\"\\x1b[2J") != NULL;
		assert_null(strchr(text, '\x1b'));
	}
	assert_true(link && number && broken);
	assert_null(hamivgpu_problem(h, 5));
	hamivgpu_close(h);
	made_end(&n);
}

static void test_broken_region(void **state)
{
	struct made_node n;
	struct hamivgpu *h;

	(void)state;
	made_begin(&n, 1);
	made_claim(&n, 100, "active", "train", 1);
	made_file(&n, "state/alloc/100/usage/region", "noise");
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_claim(h, 0)->usage.code, HAMIVGPU_BROKEN);
	assert_non_null(strstr(hamivgpu_claim(h, 0)->usage.message, "alloc/100/usage/region"));
	assert_int_equal(hamivgpu_claim(h, 0)->member_count, 0);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_refresh(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	struct hamivgpu_error e;

	(void)state;
	made_begin(&n, 1);
	fake_fault(n.fake, "nvmlInit_v2", -1, NVML_ERROR_DRIVER_NOT_LOADED);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(hamivgpu_driver_state(h)->code, HAMIVGPU_NOT_READY);
	/* the driver comes, the agent too */
	fake_node(n.fake, 2);
	made_node_file(&n);
	made_claim(&n, 1, "active", "train", 1);
	assert_int_equal(hamivgpu_refresh(h, &e), 0);
	assert_int_equal(hamivgpu_driver_state(h)->code, HAMIVGPU_OK);
	assert_int_equal(hamivgpu_card_count(h), 2);
	assert_int_equal(hamivgpu_claim_count(h), 1);
	/* the driver goes */
	fake_fault(n.fake, "nvmlDeviceGetCount_v2", -1, NVML_ERROR_UNKNOWN);
	assert_int_equal(hamivgpu_refresh(h, &e), 0);
	assert_int_equal(hamivgpu_driver_state(h)->code, HAMIVGPU_FAILED);
	assert_int_equal(n.fake->inits, 0);
	assert_int_equal(hamivgpu_claim_count(h), 1);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_arguments(void **state)
{
	struct hamivgpu_options options = { .size = 8 };
	struct hamivgpu *h = NULL;
	struct hamivgpu_error e;

	(void)state;
	assert_int_equal(hamivgpu_open(&options, &h, &e), -HAMIVGPU_INVALID);
	assert_int_equal(e.code, HAMIVGPU_INVALID);
	assert_int_equal(hamivgpu_open(&options, &h, NULL), -HAMIVGPU_INVALID);
	assert_null(h);
	hamivgpu_close(NULL);
}

static int sweep_open(void *arg)
{
	const struct made_node *n = arg;
	const struct hamivgpu_options options = { sizeof options, n->state, FAKE_NVML, n->proc };
	struct hamivgpu *h = NULL;
	struct hamivgpu_error e;
	int r = hamivgpu_open(&options, &h, &e);

	if (r < 0)
		assert_int_equal(r, -HAMIVGPU_NO_MEMORY);
	else
		r = hamivgpu_refresh(h, &e);
	hamivgpu_close(h);
	return r;
}

static void test_sweep(void **state)
{
	struct made_node n;

	(void)state;
	made_begin(&n, 2);
	made_node_file(&n);
	made_claim(&n, 100, "active", "train", 2);
	made_file(&n, "state/claims/2", "broken");
	made_region(&n, 100, 7, 300 << 20);
	n.fake->cards[0].compute[0] = (struct fake_process) { 4711, 450 << 20 };
	n.fake->cards[0].compute_count = 1;
	sweep_check("hamivgpu_open", sweep_open, &n);
	made_end(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_claims_are_sorted),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_processes_out_of_sight),
		cmocka_unit_test(test_processes_told_apart),
		cmocka_unit_test(test_a_region_cannot_claim_others_processes),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_no_agent),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_problems),
		cmocka_unit_test(test_broken_region),
		cmocka_unit_test(test_refresh),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
