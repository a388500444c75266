#include "agent/processes/hami_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "io/file.h"

_Static_assert((int)HM_MAX_CARDS <= (int)HAMI_CACHE_DEVICES, "every card has its place");
_Static_assert((int)REGION_MAX_PROCESSES <= (int)HAMI_CACHE_SLOTS, "every process has its slot");

static void fill_slot(struct hami_cache_slot *out, const struct region_process *p, size_t cards)
{
	out->pid = (int32_t)p->pid;
	out->status = HAMI_CACHE_RUNNING;
	for (size_t i = 0; i < cards; i++) {
		out->used[i].data = p->used_bytes[i];
		out->used[i].total = p->used_bytes[i];
		out->monitor_used[i] = p->used_bytes[i];
	}
}

void hami_file_fill(struct hami_cache *out, const struct hami_file_state *s)
{
	const struct region_snapshot *r = s->region;

	memset(out, 0, sizeof *out);
	out->magic = HAMI_CACHE_MAGIC;
	out->major = HAMI_CACHE_MAJOR;
	out->minor = HAMI_CACHE_MINOR;
	out->sm_init = 1;
	out->device_count = r->card_count;
	for (size_t i = 0; i < r->card_count; i++) {
		hm_fmt(out->uuids[i], sizeof out->uuids[i], "%s", r->cards[i].uuid);
		out->limit_bytes[i] = r->cards[i].limit_bytes;
		out->sm_limit[i] = r->cards[i].cores;
	}
	for (size_t i = 0; i < r->process_count; i++)
		fill_slot(&out->slots[i], &r->processes[i], r->card_count);
	out->slot_count = (int32_t)r->process_count;
	/* The monitor sums over the processes; we know the container's. */
	for (size_t i = 0; i < r->card_count && r->process_count > 0; i++)
		out->slots[0].utilization[i].sm = s->busy_percent[i];
	out->utilization_switch = 1;
	out->recent_kernel = HAMI_CACHE_LAUNCHED;
	out->priority = (int32_t)s->priority;
	out->last_kernel_time = s->now_s;
}

/* The file as it was left, if it is one. Only the host's root writes here, but other programs than ours too. */
static int open_known(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int32_t words[3];
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == HAMI_CACHE_BYTES &&
	    pread(fd, words, sizeof words, 0) == (ssize_t)sizeof words && words[0] == HAMI_CACHE_MAGIC &&
	    words[1] == HAMI_CACHE_MAJOR && words[2] == HAMI_CACHE_MINOR)
		return fd;
	close(fd);
	return -1;
}

static bool put(int fd, const struct hami_cache *c, size_t from, size_t n)
{
	return pwrite(fd, (const char *)c + from, n, (off_t)from) == (ssize_t)n;
}

#define AT(member) offsetof(struct hami_cache, member)

/* The new slots before their number; what is behind that is not looked at. */
static bool put_counters(int fd, const struct hami_cache *c)
{
	size_t slots = (size_t)c->slot_count * sizeof c->slots[0];

	return put(fd, c, AT(device_count), AT(slots) - AT(device_count) + slots) &&
	       put(fd, c, AT(slot_count), sizeof c->slot_count) && put(fd, c, AT(priority), sizeof c->priority);
}

static bool put_launch(int fd, const struct hami_cache *c, bool held)
{
	return put(fd, c, AT(last_kernel_time), sizeof c->last_kernel_time) &&
	       (held || put(fd, c, AT(recent_kernel), sizeof c->recent_kernel));
}

/* Whether the monitor still lives shows in whether it says anew what was replaced here. */
static bool hear(int fd, unsigned *held)
{
	int32_t recent, word = 0;

	if (pread(fd, &recent, sizeof recent, (off_t)AT(recent_kernel)) != (ssize_t)sizeof recent)
		return false;
	if (recent >= 0) {
		*held = 0;
		return true;
	}
	if (recent == HAMI_CACHE_HELD)
		*held = 0;
	*held = *held < HAMI_FILE_HOLD_ROUNDS ? *held + 1 : 0;
	if (*held > 0)
		word = HAMI_CACHE_HEARD;
	return recent == word || pwrite(fd, &word, sizeof word, (off_t)AT(recent_kernel)) == (ssize_t)sizeof word;
}

int hami_file_write(const char *path, const struct hami_cache *c, bool launched, unsigned *held, struct hm_err *e)
{
	hm_auto_fd fd = open_known(path);

	if (fd < 0) {
		hm_auto_str bytes = { 0 };

		*held = 0;
		str_add_n(&bytes, c, sizeof *c);
		str_addc(&bytes, '\0');
		if (str_failed(&bytes))
			return hm_err_set(e, HM_ENOMEM, "%s", path);
		return file_swap(path, bytes.p, bytes.n, 0644, e);
	}
	if (!hear(fd, held))
		return hm_err_set(e, HM_EIO, "%s: cut", path);
	if (!put_counters(fd, c) || (launched && !put_launch(fd, c, *held > 0)))
		return hm_err_errno(e, errno, "%s: write", path);
	return 0;
}
