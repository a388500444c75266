/* A region as a container may leave it: reading, reaping and claiming must end, and show only what is in range. The
 * input is either the whole file (first byte even) or patches over a good one: 4 bytes where, 8 bytes what. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "region/map.h"
#include "region/region.h"

enum { PATCH_BYTES = 12, MAX_PATCHES = 200 };

static char path[64];
static int fd = -1;

static void remove_file(void)
{
	unlink(path);
}

static void make_good(void)
{
	const struct limits l = { .count = 2,
				  .priority = 1,
				  .cards = { { "GPU-a", 1000, 25 }, { "GPU-b", 2000, 50 } } };
	struct hm_err e;

	if (fd < 0) {
		snprintf(path, sizeof path, "/tmp/fuzz-region.%d", (int)getpid());
		atexit(remove_file);
	} else {
		close(fd);
	}
	unlink(path);
	assert(region_create(path, &l, &e) == 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert(fd >= 0);
}

static void apply(const uint8_t *data, size_t n)
{
	for (unsigned i = 0; i < MAX_PATCHES && n >= PATCH_BYTES; i++, data += PATCH_BYTES, n -= PATCH_BYTES) {
		uint32_t where;

		memcpy(&where, data, sizeof where);
		where = where % (uint32_t)(sizeof(struct region_layout) - 8) & ~7U;
		assert(pwrite(fd, data + 4, 8, where) == 8);
	}
}

static bool not_odd(const struct region_process *p, void *arg)
{
	(void)arg;
	return p->pid % 2 == 0;
}

static void check(const struct region_snapshot *s)
{
	assert(s->card_count <= HM_MAX_CARDS && s->process_count <= REGION_MAX_PROCESSES);
	assert(memchr(s->last_trouble, '\0', sizeof s->last_trouble) != NULL);
	for (size_t i = 0; i < s->card_count; i++) {
		assert(memchr(s->cards[i].uuid, '\0', sizeof s->cards[i].uuid) != NULL);
		assert(s->cards[i].cores <= 100 && s->cards[i].used_bytes <= REGION_MAX_BYTES);
	}
	for (size_t i = 0; i < s->process_count; i++) {
		for (size_t card = 0; card < HM_MAX_CARDS; card++)
			assert(s->processes[i].used_bytes[card] <= REGION_MAX_BYTES);
	}
}

static bool everybody(const struct region_slot_id *id, void *arg)
{
	(void)id;
	(void)arg;
	return true;
}

static void use(void)
{
	const struct process_id me = { .pid = 5, .start_time = 6, .pid_namespace = 7 };
	struct ledger l = { 0 };
	struct region_map m;

	if (region_map_file(path, &m, NULL) < 0)
		return;
	if (!slot_claim(m.r, &me, &l)) {
		assert(region_map_reap(&m, 0, everybody, NULL, NULL) >= 0);
		slot_claim(m.r, &me, &l);
	}
	if (l.region != NULL) {
		ledger_reserve(&l, 0, 1000, 10);
		ledger_release(&l, 0, 10);
	}
	region_unmap(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct region_process list[REGION_MAX_PROCESSES];
	struct region_snapshot s = { .processes = list };
	struct hm_err e = { 0 };

	if (n == 0)
		return 0;
	make_good();
	if (data[0] % 2 == 0)
		assert(ftruncate(fd, 0) == 0 && pwrite(fd, data + 1, n - 1, 0) == (ssize_t)(n - 1));
	else
		apply(data + 1, n - 1);
	if (region_snapshot(path, &s, &e) < 0) {
		assert(e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	check(&s);
	assert(region_reap(path, not_odd, NULL, &e) >= 0);
	use();
	return 0;
}
