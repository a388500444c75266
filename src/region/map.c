#include "region/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "core/fmt.h"
#include "region/shared.h"
#include "region/sys.h"

static int check_header(const struct region_header *h, uint64_t size, struct hm_err *e)
{
	if (h->magic != REGION_MAGIC)
		return hm_err_set(e, HM_EPROTO, "not a usage region");
	if (h->version != REGION_VERSION)
		return hm_err_set(e, HM_EUNSUPPORTED, "layout version %u; this program knows %d", h->version,
				  REGION_VERSION);
	if (h->bytes != sizeof(struct region_layout) || size != sizeof(struct region_layout))
		return hm_err_set(e, HM_EPROTO, "%lu bytes long instead of %zu", (unsigned long)size,
				  sizeof(struct region_layout));
	if (h->card_count > HM_MAX_CARDS)
		return hm_err_set(e, HM_EPROTO, "%u cards", h->card_count);
	return 0;
}

static int check_file(int fd, struct region_header *h, struct hm_err *e)
{
	struct stat st;
	long n;

	if (sys_fstat(fd, &st) < 0)
		return hm_err_errno(e, errno, "fstat");
	if (!S_ISREG(st.st_mode))
		return hm_err_set(e, HM_EPROTO, "not a regular file");
	n = sys_pread(fd, h, sizeof *h, 0);
	if (n < 0)
		return hm_err_errno(e, errno, "read");
	if ((size_t)n < sizeof *h)
		return hm_err_set(e, HM_EPROTO, "%ld bytes long: cut", (long)st.st_size);
	return check_header(h, (uint64_t)st.st_size, e);
}

/* Opening can be harmful by itself: a container may make a device node where its region was, which only root outside
 * can open (a watchdog begins to run, a tape rewinds). So the file is looked at before it is opened for use, and that
 * very file is opened, by way of /proc. A process without /proc is inside the container, and opens only what it may. */
static int open_regular(const char *path, int flags)
{
	int at = sys_open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0), fd = -1;
	char again[32];
	struct stat st;

	if (at < 0)
		return -1;
	if (sys_fstat(at, &st) < 0 || !S_ISREG(st.st_mode))
		return at; /* for check_file to refuse */
	hm_fmt(again, sizeof again, "/proc/self/fd/%d", at);
	fd = sys_open(again, flags, 0);
	sys_close(at);
	return fd >= 0 ? fd : sys_open(path, flags | O_NOFOLLOW, 0);
}

int region_open_file(const char *path, bool writable, struct region_header *h, struct hm_err *e)
{
	int fd = open_regular(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return hm_err_errno(e, errno, "usage region %s", path);
	r = check_file(fd, h, e);
	if (r < 0) {
		sys_close(fd);
		hm_err_wrap(e, "usage region %s", path);
		return r;
	}
	return fd;
}

static int map_fd(int fd, struct region_map *m, struct hm_err *e)
{
	struct stat st;
	void *p;

	if (sys_fstat(fd, &st) < 0)
		return hm_err_errno(e, errno, "usage region %s", m->path);
	m->device = st.st_dev;
	m->inode = st.st_ino;
	p = mmap(NULL, sizeof *m->r, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return hm_err_errno(e, errno, "map usage region %s", m->path);
	m->r = p;
	return 0;
}

int region_map_file(const char *path, struct region_map *m, struct hm_err *e)
{
	struct region_header h;
	int fd, r;

	memset(m, 0, sizeof *m);
	if (hm_fmt(m->path, sizeof m->path, "%s", path) >= sizeof m->path)
		return hm_err_set(e, HM_EINVAL, "usage region: the path has more than %d bytes", REGION_PATH_BYTES);
	fd = region_open_file(path, true, &h, e);
	if (fd < 0)
		return fd;
	r = map_fd(fd, m, e);
	sys_close(fd);
	return r;
}

void region_fill(struct region_header *h, struct region_card_config *cards, const struct limits *limits,
		 uint64_t generation)
{
	*h = (struct region_header) {
		.magic = REGION_MAGIC,
		.version = REGION_VERSION,
		.bytes = sizeof(struct region_layout),
		.generation = generation,
		.card_count = (uint32_t)limits->count,
		.priority = limits->priority,
		.policy = (uint32_t)limits->policy,
		.oversubscribe = limits->oversubscribe,
	};
	for (size_t i = 0; i < limits->count; i++) {
		cards[i].limit_bytes = limits->cards[i].memory_bytes;
		cards[i].cores = limits->cards[i].cores;
		memcpy(cards[i].uuid, limits->cards[i].uuid, sizeof cards[i].uuid);
	}
}

int region_map_private(const struct limits *limits, struct region_map *m, struct hm_err *e)
{
	void *p = mmap(NULL, sizeof *m->r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(m, 0, sizeof *m);
	if (p == MAP_FAILED)
		return hm_err_errno(e, errno, "map a private usage region");
	madvise(p, sizeof *m->r, MADV_DONTFORK);
	m->r = p;
	region_fill(&m->r->header, m->r->cards, limits, 1);
	return 0;
}

void region_unmap(struct region_map *m)
{
	if (m->r != NULL)
		munmap(m->r, sizeof *m->r);
	m->r = NULL;
}

void region_map_leave(struct region_map *m)
{
	void *p = mmap(m->r, sizeof *m->r, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		m->r = NULL;
}

/* Opens the mapped file again. Its name may lead elsewhere by now. */
static int reopen(const struct region_map *m, struct hm_err *e)
{
	struct region_header h;
	struct stat st;
	int fd = region_open_file(m->path, true, &h, e);

	if (fd < 0)
		return fd;
	if (sys_fstat(fd, &st) < 0 || st.st_dev != m->device || st.st_ino != m->inode) {
		sys_close(fd);
		return hm_err_set(e, HM_ENOTFOUND, "usage region %s: deleted or replaced under a running process",
				  m->path);
	}
	return fd;
}

int region_map_check(const struct region_map *m, struct hm_err *e)
{
	int fd;

	if (m->path[0] == '\0')
		return 0;
	fd = reopen(m, e);
	if (fd < 0)
		return fd;
	sys_close(fd);
	return 0;
}

static bool try_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return sys_lock(fd, &lock) == 0;
}

static int wait_lock(int fd, unsigned wait_ms, struct hm_err *e)
{
	for (unsigned halves = 0; !try_lock(fd); halves++) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return hm_err_errno(e, errno, "lock the usage region");
		if (halves >= wait_ms * 2)
			return hm_err_set(e, HM_EAGAIN, "another process is returning charge");
		sys_sleep_us(500);
	}
	return 0;
}

struct locked {
	struct region_map *m;
	int fd; /* -1: a private region */
};

static int lock(struct region_map *m, unsigned wait_ms, struct locked *out, struct hm_err *e)
{
	unsigned halves = 0;
	int r;

	*out = (struct locked) { m, -1 };
	while (atomic_exchange(&m->reaping, 1) != 0) {
		if (halves++ >= wait_ms * 2)
			return hm_err_set(e, HM_EAGAIN, "another thread is returning charge");
		sys_sleep_us(500);
	}
	if (m->path[0] == '\0')
		return 0;
	out->fd = r = reopen(m, e);
	if (r >= 0)
		r = wait_lock(out->fd, wait_ms, e);
	if (r >= 0)
		return 0;
	if (out->fd >= 0)
		sys_close(out->fd);
	atomic_store(&m->reaping, 0);
	return r;
}

static void unlock(struct locked *l)
{
	if (l->fd >= 0)
		sys_close(l->fd); /* drops the record lock */
	atomic_store(&l->m->reaping, 0);
}

int region_map_reap(struct region_map *m, unsigned wait_ms, bool (*dead)(const struct region_slot_id *id, void *arg),
		    void *arg, struct hm_err *e)
{
	struct locked l;
	int r = lock(m, wait_ms, &l, e);

	if (r < 0)
		return r;
	r = (int)slot_clear_if(m->r, dead, arg);
	unlock(&l);
	return r;
}

static int find_card(const struct region_layout *r, const char *uuid)
{
	uint32_t count = HM_MIN(r->header.card_count, (uint32_t)HM_MAX_CARDS);

	for (uint32_t i = 0; i < count; i++) {
		if (strncmp(r->cards[i].uuid, uuid, HM_UUID_BYTES) == 0)
			return (int)i;
	}
	return -HM_ENOTFOUND;
}

int region_map_card(struct region_map *m, const struct limit_card *card, bool add)
{
	struct region_layout *r = m->r;
	int at = find_card(r, card->uuid);
	struct locked l;
	uint32_t count;

	if (at >= 0 || !add || lock(m, 1000, &l, NULL) < 0)
		return at;
	at = find_card(r, card->uuid);
	count = r->header.card_count;
	if (at < 0 && count < HM_MAX_CARDS) {
		memcpy(r->cards[count].uuid, card->uuid, HM_UUID_BYTES);
		r->cards[count].limit_bytes = card->memory_bytes;
		r->cards[count].cores = card->cores;
		__atomic_store_n(&r->header.card_count, count + 1, __ATOMIC_RELEASE);
		at = (int)count;
	}
	unlock(&l);
	return at;
}

void region_trouble(struct region_layout *r, const char *text)
{
	uint64_t words[REGION_TROUBLE_BYTES / 8] = { 0 };
	uint64_t number = atomic_fetch_add(&r->stats.troubles, 1);
	struct region_trouble *t = &r->troubles[number % REGION_TROUBLE_TEXTS];

	memcpy(words, text, strnlen(text, sizeof words - 1));
	for (size_t i = 0; i < HM_COUNT(words); i++)
		atomic_store_explicit(&t->text[i], words[i], memory_order_relaxed);
}
