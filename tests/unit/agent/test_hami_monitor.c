#include "agent/processes/hami_monitor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/container/container_dir.h"
#include "contract/hami_cache.h"
#include "contract/region_layout.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"

static struct agent_paths paths;
static struct claims *claims;
static struct loop *loop;
static struct hami_monitor *monitor;
#define RECENT_KERNEL 2008904
static uint64_t now_ms;

uint64_t __wrap_loop_now_ms(const struct loop *l);

uint64_t __wrap_loop_now_ms(const struct loop *l)
{
	(void)l;
	return now_ms;
}

static void add_claim(uint64_t number, const char *pod, const char *container, enum claim_state state)
{
	struct claim c = make_claim(number, pod, "", "x", NULL);
	struct hm_err e = { 0 };

	snprintf(c.container, sizeof c.container, "%s", container);
	c.state = state;
	if (container_dir_write(&paths, &c, false, &e) < 0 || claims_put(claims, &c, &e) < 0)
		fail_msg("%s", e.msg);
}

static int setup(void **state)
{
	static char dir[300];
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct hm_err e;

	if (temp_setup(state) < 0)
		return -1;
	agent_options_init(&o, table);
	snprintf(dir, sizeof dir, "%s", temp_path("s"));
	o.state_dir = dir;
	now_ms = 1000;
	if (agent_paths_init(&paths, &o, &e) < 0 || claims_open(paths.claims.s, &claims, &e) < 0 ||
	    loop_new(&loop, &e) < 0)
		return -1;
	return hami_monitor_new(loop, temp_path("m/containers"), &paths, claims, &monitor, &e);
}

static int teardown(void **state)
{
	hami_monitor_free(HM_STEAL(monitor));
	loop_free(HM_STEAL(loop));
	claims_free(HM_STEAL(claims));
	return temp_teardown(state);
}

static int32_t word_at(const char *file, long at)
{
	int fd = open(temp_path(file), O_RDONLY);
	int32_t value = 0;

	assert_int_equal(pread(fd, &value, sizeof value, at), (ssize_t)sizeof value);
	close(fd);
	return value;
}

static void set_word(const char *file, long at, uint64_t value, size_t bytes)
{
	int fd = open(temp_path(file), O_WRONLY);

	assert_int_equal(pwrite(fd, &value, bytes, at), (ssize_t)bytes);
	close(fd);
}

#define FILE_OF_A "m/containers/uid-a_main/hami-vgpu.cache"

static void each_active_claim_has_a_file_while_it_lives(void **state)
{
	struct hm_err e;

	(void)state;
	add_claim(1, "uid-a", "main", CLAIM_ACTIVE);
	add_claim(2, "uid-b", "main", CLAIM_ALLOCATED);
	add_claim(3, "", "main", CLAIM_ACTIVE);
	add_claim(4, "uid-c", "a/b", CLAIM_ACTIVE);
	assert_int_equal(hami_monitor_round(monitor), 1);
	assert_int_equal(temp_count("m/containers"), 1);
	assert_int_equal(word_at(FILE_OF_A, 0), 19920718);

	assert_int_equal(claims_remove(claims, 1, &e), 0);
	assert_int_equal(hami_monitor_round(monitor), 0);
	assert_int_equal(temp_count("m/containers"), 0);
}

static void another_program_s_folders_stay(void **state)
{
	(void)state;
	assert_int_equal(mkdir(temp_path("m/containers/uid-x_y"), 0755), 0);
	temp_write("m/containers/uid-x_y/1b3c.cache", "HAMi-core's");
	hami_monitor_round(monitor);
	assert_true(temp_exists("m/containers/uid-x_y/1b3c.cache"));
}

/* GPU time that libvgpu charges in the region is a launch to the monitor. */
static void launches_are_told_and_holds_are_heard(void **state)
{
	const long spans = offsetof(struct region_layout, compute) + offsetof(struct region_compute, spans_ns);

	(void)state;
	add_claim(1, "uid-a", "main", CLAIM_ACTIVE);
	hami_monitor_round(monitor);
	set_word(FILE_OF_A, 2008904, 0, 4);
	hami_monitor_round(monitor);
	assert_int_equal(word_at(FILE_OF_A, 2008904), 0);

	set_word("s/alloc/1/usage/region", spans, 5000000, 8);
	hami_monitor_round(monitor);
	assert_int_equal(word_at(FILE_OF_A, 2008904), 2);
	assert_false(hami_monitor_holds(monitor, 1));

	set_word(FILE_OF_A, 2008904, (uint64_t)-1, 4);
	hami_monitor_round(monitor);
	assert_true(hami_monitor_holds(monitor, 1));
	assert_false(hami_monitor_holds(monitor, 9));
	set_word(FILE_OF_A, 2008904, 0, 4);
	hami_monitor_round(monitor);
	assert_false(hami_monitor_holds(monitor, 1));
}

/* A monitor that lives says each 5 s anew that it holds; what one that has ended said last holds for half a minute. */
static void a_hold_goes_with_its_monitor(void **state)
{
	(void)state;
	add_claim(1, "uid-a", "main", CLAIM_ACTIVE);
	hami_monitor_round(monitor);
	for (unsigned i = 0; i < 20; i++) {
		set_word(FILE_OF_A, RECENT_KERNEL, (uint64_t)-1, 4);
		hami_monitor_round(monitor);
		assert_true(hami_monitor_holds(monitor, 1));
		assert_true(word_at(FILE_OF_A, RECENT_KERNEL) < 0);
	}
	for (unsigned i = 0; i < 5; i++) {
		hami_monitor_round(monitor);
		assert_true(hami_monitor_holds(monitor, 1));
	}
	for (unsigned i = 0; i < 3; i++) {
		hami_monitor_round(monitor);
		assert_false(hami_monitor_holds(monitor, 1));
		assert_int_equal(word_at(FILE_OF_A, RECENT_KERNEL), 0);
	}
}

#define PRIORITY 2008908
#define FIRST_SLOT_SM (1856 + 1160 + 16)

/* A process in the container, so that there is a slot for its share of the card. */
static void add_process(void)
{
	const long heads = offsetof(struct region_layout, heads);

	set_word("s/alloc/1/usage/region", heads, UINT64_C(9) << WHO_PID_BITS | 5, 8);
	set_word("s/alloc/1/usage/region", heads + 8, UINT64_C(7) << META_NAMESPACE_BITS | 1, 8);
}

static int32_t percent_after(uint64_t ms)
{
	set_word(FILE_OF_A, RECENT_KERNEL, 0, 4);
	now_ms += ms;
	hami_monitor_round(monitor);
	return word_at(FILE_OF_A, FIRST_SLOT_SM);
}

/* A container without a limit charges nothing, and one whose card others use too charges their slices. */
static void the_driver_s_samples_come_first(void **state)
{
	const long spans = offsetof(struct region_layout, compute) + offsetof(struct region_compute, spans_ns);

	(void)state;
	add_claim(1, "uid-a", "main", CLAIM_ACTIVE);
	add_process();
	hami_monitor_round(monitor);
	hami_monitor_note_busy(monitor, 1, "GPU-0", 1500000000);
	assert_int_equal(percent_after(5000), 30);
	assert_int_equal(word_at(FILE_OF_A, RECENT_KERNEL), 2);
	assert_int_equal(percent_after(5000), 0);
	assert_int_equal(word_at(FILE_OF_A, RECENT_KERNEL), 0);

	set_word("s/alloc/1/usage/region", spans, 4000000000, 8);
	assert_int_equal(percent_after(5000), 80);
	set_word("s/alloc/1/usage/region", spans, 8000000000, 8);
	hami_monitor_note_busy(monitor, 1, "GPU-0", 3500000000);
	assert_int_equal(percent_after(5000), 40);

	hami_monitor_note_busy(monitor, 1, "GPU-0", 500000000); /* begun anew */
	assert_int_equal(percent_after(5000), 10);
	hami_monitor_note_busy(monitor, 1, "GPU-9", 9000000000); /* of no card of its */
	hami_monitor_note_busy(monitor, 2, "GPU-0", 9000000000);
	assert_int_equal(percent_after(5000), 0);
}

static void priority_is_the_limit_file_s(void **state)
{
	(void)state;
	add_claim(1, "uid-a", "main", CLAIM_ACTIVE);
	hami_monitor_round(monitor);
	assert_int_equal(word_at(FILE_OF_A, PRIORITY), 1);
	temp_write("s/alloc/1/limits", "hami-vgpu-limits 1\ngpu=GPU-0 memory=1048576 cores=25\npriority=0\nend\n");
	hami_monitor_round(monitor);
	assert_int_equal(word_at(FILE_OF_A, PRIORITY), 0);
	temp_write("s/alloc/1/limits", "noise");
	hami_monitor_round(monitor);
	assert_int_equal(word_at(FILE_OF_A, PRIORITY), 1);
}

/* A region that its container made unreadable costs nobody else his file. */
static void a_harmed_region_harms_no_other(void **state)
{
	(void)state;
	add_claim(1, "uid-a", "main", CLAIM_ACTIVE);
	add_claim(2, "uid-b", "main", CLAIM_ACTIVE);
	temp_write("s/alloc/1/usage/region", "noise");
	assert_int_equal(hami_monitor_round(monitor), 1);
	assert_true(temp_exists("m/containers/uid-b_main/hami-vgpu.cache"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_active_claim_has_a_file_while_it_lives, setup, teardown),
		cmocka_unit_test_setup_teardown(another_program_s_folders_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(launches_are_told_and_holds_are_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hold_goes_with_its_monitor, setup, teardown),
		cmocka_unit_test_setup_teardown(the_driver_s_samples_come_first, setup, teardown),
		cmocka_unit_test_setup_teardown(priority_is_the_limit_file_s, setup, teardown),
		cmocka_unit_test_setup_teardown(a_harmed_region_harms_no_other, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
