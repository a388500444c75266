/* The region's file: making it, taking it over, reading and reaping it while it is hostile. */
#include "region/region.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/macros.h"
#include "region/map.h"

static char dir[64], path[96];
static const struct limits two_cards = {
	.count = 2,
	.priority = 1,
	.cards = { { "GPU-a", 1000, 25 }, { "GPU-b", 2000, 50 } },
};

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/hami-region.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/region", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir); /* fails where something was left behind */
}

static void make(const struct limits *l)
{
	struct hm_err e = { 0 };

	if (region_create(path, l, &e) < 0)
		fail_msg("%s", e.msg);
}

static void attach(struct region_map *m, struct ledger *l)
{
	struct process_id me = process_id_self();
	struct hm_err e = { 0 };

	if (region_map_file(path, m, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(slot_claim(m->r, &me, l));
}

static void is_made_whatever_the_umask(void **state)
{
	struct region_snapshot s = { 0 };
	mode_t old = umask(077);
	struct stat st;

	(void)state;
	make(&two_cards);
	umask(old);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	assert_int_equal(st.st_size, sizeof(struct region_layout));
	assert_true((uint64_t)st.st_blocks * 512 >= sizeof(struct region_layout)); /* no hole for a full disk */
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.card_count, 2);
	assert_string_equal(s.cards[1].uuid, "GPU-b");
	assert_int_equal(s.cards[1].limit_bytes, 2000);
	assert_int_equal(s.cards[1].cores, 50);
	assert_int_equal(s.cards[1].used_bytes, 0);
}

static void keeps_its_counters_when_the_limits_change(void **state)
{
	static struct region_process list[REGION_MAX_PROCESSES];
	struct region_snapshot s = { .processes = list };
	struct limits changed = two_cards;
	struct ledger l = { 0 };
	struct region_map m;

	(void)state;
	make(&two_cards);
	attach(&m, &l);
	assert_int_equal(ledger_reserve(&l, 1, 2000, 1500), LEDGER_OK);
	assert_int_equal(ledger_reserve(&l, 1, 2000, 501), LEDGER_FULL);
	m.r->counters[1].spilled = 3;
	m.r->counters[1].spilled_bytes = 4711;
	m.r->compute[1].spans_ns = 815;
	region_trouble(m.r, "first");
	region_trouble(m.r, "second\n");
	changed.cards[1].memory_bytes = 9000;
	make(&changed);
	assert_int_equal(ledger_reserve(&l, 1, 9000, 600), LEDGER_OK); /* the same file */
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.cards[1].limit_bytes, 9000);
	assert_int_equal(s.cards[1].used_bytes, 2100);
	assert_int_equal(s.cards[1].peak_bytes, 2100);
	assert_int_equal(s.cards[1].spilled, 3);
	assert_int_equal(s.cards[1].spilled_bytes, 4711);
	assert_int_equal(s.cards[0].spilled, 0);
	assert_int_equal(s.cards[1].spans_ns, 815);
	assert_int_equal(s.cards[0].spans_ns, 0);
	assert_int_equal(s.process_count, 1);
	assert_int_equal(list[0].pid, getpid());
	assert_int_equal(list[0].used_bytes[0], 0);
	assert_int_equal(list[0].used_bytes[1], 2100);
	assert_int_equal(s.troubles, 2);
	assert_string_equal(s.last_trouble, "second?");
	assert_int_equal(region_map_check(&m, NULL), 0);
	region_unmap(&m);
}

static void is_replaced_when_the_cards_change(void **state)
{
	struct limits changed = two_cards;
	struct region_snapshot s = { 0 };
	struct ledger l = { 0 };
	struct region_map m;

	(void)state;
	make(&two_cards);
	attach(&m, &l);
	assert_int_equal(ledger_reserve(&l, 1, 2000, 1500), LEDGER_OK);
	snprintf(changed.cards[1].uuid, sizeof changed.cards[1].uuid, "GPU-c");
	make(&changed);
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.cards[1].used_bytes, 0);
	assert_int_equal(region_map_check(&m, NULL), -HM_ENOTFOUND);
	assert_int_equal(m.r->header.generation, 1);
	region_unmap(&m);
	assert_int_equal(region_map_file(path, &m, NULL), 0);
	assert_int_equal(m.r->header.generation, 2);
	region_unmap(&m);
}

static void write_file(const void *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	close(fd);
}

static void put_u32(off_t at, uint32_t v)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0 && pwrite(fd, &v, sizeof v, at) == (ssize_t)sizeof v);
	close(fd);
}

static void check_refused(int code)
{
	struct region_snapshot s = { 0 };
	struct region_map m;

	assert_int_equal(region_snapshot(path, &s, NULL), -code);
	assert_int_equal(region_map_file(path, &m, NULL), -code);
	assert_int_equal(region_reap(path, NULL, NULL, NULL), -code);
}

static void refuses_what_is_no_region(void **state)
{
	(void)state;
	check_refused(HM_ENOTFOUND);
	write_file("", 0);
	check_refused(HM_EPROTO);
	write_file("not a region, but long enough to hold the header of one, or so it would seem", 76);
	check_refused(HM_EPROTO);
	unlink(path);
	assert_int_equal(mkfifo(path, 0666), 0); /* must not block */
	check_refused(HM_EPROTO);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	check_refused(HM_EPROTO);
	unlink(path);
	/* It cannot be opened at all (ENXIO): so what is no file was not even tried. */
	assert_int_equal(mknod(path, S_IFSOCK | 0666, 0), 0);
	check_refused(HM_EPROTO);
	unlink(path);
	make(&two_cards);
	put_u32(offsetof(struct region_header, version), REGION_VERSION + 1);
	check_refused(HM_EUNSUPPORTED);
	put_u32(offsetof(struct region_header, version), REGION_VERSION);
	put_u32(offsetof(struct region_header, card_count), HM_MAX_CARDS + 1);
	check_refused(HM_EPROTO);
	put_u32(offsetof(struct region_header, card_count), 2);
	assert_int_equal(truncate(path, sizeof(struct region_layout) + 1), 0);
	check_refused(HM_EPROTO);
	for (size_t n = 0; n < sizeof(struct region_layout); n = n * 2 + 1) {
		assert_int_equal(truncate(path, (off_t)n), 0);
		check_refused(HM_EPROTO);
	}
	make(&two_cards); /* the agent mends it */
	assert_int_equal(region_snapshot(path, &(struct region_snapshot) { 0 }, NULL), 0);
}

static bool nobody(const struct region_process *p, void *arg)
{
	(void)p;
	(void)arg;
	return false;
}

static bool everybody(const struct region_process *p, void *arg)
{
	(void)p;
	(void)arg;
	return true;
}

static bool no_slot(const struct region_slot_id *id, void *arg)
{
	(void)id;
	(void)arg;
	return false;
}

static void survives_noise(void **state)
{
	static struct region_process list[REGION_MAX_PROCESSES];
	static unsigned char noise[sizeof(struct region_layout) - sizeof(struct region_header)];

	(void)state;
	make(&two_cards);
	for (unsigned seed = 1; seed <= 20; seed++) {
		struct region_snapshot s = { .processes = list };
		struct process_id me = process_id_self();
		struct ledger l = { 0 };
		struct region_map m;
		int fd;

		srand(seed);
		for (size_t i = 0; i < sizeof noise; i++)
			noise[i] = (unsigned char)(seed % 4 == 0 ? 0xff : rand() >> 7);
		fd = open(path, O_WRONLY);
		assert_int_equal(pwrite(fd, noise, sizeof noise, sizeof(struct region_header)), sizeof noise);
		close(fd);
		assert_int_equal(region_snapshot(path, &s, NULL), 0);
		assert_int_equal(s.card_count, 2);
		assert_true(strnlen(s.last_trouble, sizeof s.last_trouble) < sizeof s.last_trouble);
		assert_true(region_reap(path, everybody, NULL, NULL) == 0);
		assert_int_equal(region_map_file(path, &m, NULL), 0);
		assert_false(slot_claim(m.r, &me, &l)); /* every slot is taken */
		assert_int_equal(ledger_reserve(&(struct ledger) { .region = m.r }, 0, 1000, 1), LEDGER_LOST);
		assert_int_equal(region_map_reap(&m, 0, no_slot, NULL, NULL), 0);
		assert_int_equal(region_reap(path, nobody, NULL, NULL), REGION_SLOTS);
		assert_true(slot_claim(m.r, &me, &l)); /* and usable again, whatever the counters say */
		ledger_reserve(&l, 0, REGION_MAX_BYTES, 1);
		ledger_release(&l, 0, REGION_MAX_BYTES);
		region_unmap(&m);
	}
}

static void returns_what_dead_processes_held(void **state)
{
	struct region_snapshot s = { 0 };
	int ready[2];
	char byte;
	pid_t child;

	(void)state;
	make(&two_cards);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		struct ledger l = { 0 };
		struct region_map m;

		attach(&m, &l);
		if (ledger_reserve(&l, 0, 1000, 700) != LEDGER_OK)
			_exit(1);
		if (write(ready[1], "x", 1) == 1)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(region_reap(path, everybody, NULL, NULL), 0);
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.cards[0].used_bytes, 700);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(region_reap(path, nobody, NULL, NULL), 1);
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.cards[0].used_bytes, 0);
	close(ready[0]);
	close(ready[1]);
}

static void invent_process(void)
{
	const struct region_head head = { .who = 1, .meta = 1 };
	int fd = open(path, O_WRONLY);

	assert_int_equal(pwrite(fd, &head, sizeof head, offsetof(struct region_layout, heads)), sizeof head);
	close(fd);
}

static bool child_hangs;

static void after_fork(void)
{
	alarm(child_hangs ? 20 : 0);
	while (child_hangs)
		pause();
}

/* A file whose pages never come (a container may have put another file system below) must not stop the agent. */
static void a_child_that_hangs_is_ended(void **state)
{
	struct timespec from, to;
	int r;

	(void)state;
	make(&two_cards);
	pthread_atfork(NULL, NULL, after_fork);
	invent_process();
	alarm(20);
	child_hangs = true;
	clock_gettime(CLOCK_MONOTONIC, &from);
	r = region_reap(path, nobody, NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	child_hangs = false;
	alarm(0);
	assert_int_equal(r, 0);
	assert_true(to.tv_sec - from.tv_sec < 3);
	assert_int_equal(region_reap(path, nobody, NULL, NULL), 1);
}

/* The lock is the kernel's: who is killed while holding it does not hold it any more. */
static void spoil(unsigned round)
{
	static const off_t sizes[] = { 0, 5000, sizeof(struct region_layout), sizeof(struct region_layout) + 1 };
	const uint64_t noise[4] = { round, ~(uint64_t)round, 1, 1 };
	int fd = open(path, O_RDWR);

	if (fd < 0)
		return;
	if (round % 3 == 0)
		(void)!ftruncate(fd, sizes[round / 3 % HM_COUNT(sizes)]);
	else
		(void)!pwrite(fd, noise, sizeof noise, (off_t)(round * 104729U % sizeof(struct region_layout)));
	close(fd);
}

static void share_words(void)
{
	struct region_orders stands, want = { .alpha = 1 };
	int fd = region_share_open(path, NULL);
	uint64_t spans;

	if (fd < 0)
		return;
	if (region_share_card(fd, "GPU-a", NULL) >= 0 && region_share_read(fd, 0, &spans, &stands, NULL) == 0)
		(void)!region_share_write(fd, 0, &stands, &want, NULL);
	close(fd);
}

/* Another process cuts, grows and scribbles all the while. */
static void survives_a_file_that_changes_under_it(void **state)
{
	static struct region_process list[REGION_MAX_PROCESSES];
	pid_t vandal;
	unsigned good = 0, bad = 0;

	(void)state;
	make(&two_cards);
	vandal = fork();
	if (vandal == 0) {
		for (unsigned round = 0;; round++)
			spoil(round);
	}
	for (unsigned i = 0; i < 1500; i++) {
		struct region_snapshot s = { .processes = list };
		bool whole = region_snapshot(path, &s, NULL) == 0;

		good += whole;
		bad += !whole;
		share_words();
		if (i % 8 == 0)
			(void)!region_reap(path, nobody, NULL, NULL);
		if (i % 4 == 0)
			(void)!region_create(path, &two_cards, NULL);
	}
	kill(vandal, SIGKILL);
	waitpid(vandal, NULL, 0);
	assert_true(good > 0 && bad > 0);
	make(&two_cards);
	assert_int_equal(region_snapshot(path, &(struct region_snapshot) { 0 }, NULL), 0);
}

static void the_reap_lock_dies_with_its_holder(void **state)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct region_map m;
	int ready[2], r;
	char byte;
	pid_t child;

	(void)state;
	make(&two_cards);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		int fd = open(path, O_RDWR);

		if (fcntl(fd, F_SETLK, &whole) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(region_map_file(path, &m, NULL), 0);
	assert_int_equal(region_map_reap(&m, 3, no_slot, NULL, NULL), -HM_EAGAIN);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	r = region_map_reap(&m, 1000, no_slot, NULL, NULL);
	assert_int_equal(r, 0);
	region_unmap(&m);
	close(ready[0]);
	close(ready[1]);
}

static void many_creators_make_one_file(void **state)
{
	enum { CREATORS = 20 };
	pid_t pids[CREATORS];
	struct region_snapshot s = { 0 };

	(void)state;
	for (int i = 0; i < CREATORS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct ledger l = { 0 };
			struct region_map m;

			make(&two_cards);
			attach(&m, &l);
			_exit(ledger_reserve(&l, 0, 1000, 10) == LEDGER_OK ? 0 : 1);
		}
	}
	for (int i = 0; i < CREATORS; i++) {
		int status;

		waitpid(pids[i], &status, 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.cards[0].used_bytes, 10 * CREATORS);
}

static void cards_may_be_added(void **state)
{
	const struct limit_card b = { "GPU-b", 1, 1 }, c = { "GPU-c", 77, 8 };
	struct region_snapshot s = { 0 };
	struct region_map m;

	(void)state;
	make(&two_cards);
	assert_int_equal(region_map_file(path, &m, NULL), 0);
	assert_int_equal(region_map_card(&m, &b, false), 1);
	assert_int_equal(region_map_card(&m, &c, false), -HM_ENOTFOUND);
	assert_int_equal(region_map_card(&m, &c, true), 2);
	assert_int_equal(region_map_card(&m, &c, true), 2);
	assert_int_equal(region_snapshot(path, &s, NULL), 0);
	assert_int_equal(s.card_count, 3);
	assert_int_equal(s.cards[2].limit_bytes, 77);
	region_unmap(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_made_whatever_the_umask, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(keeps_its_counters_when_the_limits_change, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(is_replaced_when_the_cards_change, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(refuses_what_is_no_region, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(survives_noise, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(survives_a_file_that_changes_under_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(returns_what_dead_processes_held, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(the_reap_lock_dies_with_its_holder, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_child_that_hangs_is_ended, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(many_creators_make_one_file, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(cards_may_be_added, make_dir, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
