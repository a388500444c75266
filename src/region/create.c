/* Making a region's file. It appears under its name complete, by link or rename, so no reader sees half of one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fmt.h"
#include "region/map.h"
#include "region/region.h"
#include "region/sys.h"

/* What stands in front of the counters. */
struct config {
	struct region_header header;
	struct region_card_config cards[HM_MAX_CARDS];
};
_Static_assert(sizeof(struct config) == offsetof(struct region_layout, counters), "header and cards lead the layout");

static void fill_config(struct config *c, const struct limits *l, uint64_t generation)
{
	memset(c, 0, sizeof *c);
	region_fill(&c->header, c->cards, l, generation);
}

static int write_all(int fd, const void *bytes, size_t n, off_t at, struct hm_err *e)
{
	const char *from = bytes;

	while (n > 0) {
		long w = sys_pwrite(fd, from, n, at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return hm_err_errno(e, w < 0 ? errno : ENOSPC, "write");
		from += w;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Every block is there from the start: a full disk must not become a SIGBUS in somebody's program. */
static int reserve_blocks(int fd, struct hm_err *e)
{
	static const char zeros[4096];

	if (sys_fallocate(fd, sizeof(struct region_layout)) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return hm_err_errno(e, errno, "reserve %zu bytes", sizeof(struct region_layout));
	for (size_t at = 0; at < sizeof(struct region_layout); at += sizeof zeros) {
		int r = write_all(fd, zeros, HM_MIN(sizeof zeros, sizeof(struct region_layout) - at), (off_t)at, e);

		if (r < 0)
			return r;
	}
	return 0;
}

static int fill_file(int fd, const struct limits *l, uint64_t generation, struct hm_err *e)
{
	struct config c;
	int r = reserve_blocks(fd, e);

	if (r < 0)
		return r;
	fill_config(&c, l, generation);
	r = write_all(fd, &c, sizeof c, 0, e);
	if (r < 0)
		return r;
	if (fchmod(fd, 0666) < 0)
		return hm_err_errno(e, errno, "fchmod");
	return 0;
}

static int make_aside(const char *aside, const struct limits *l, uint64_t generation, struct hm_err *e)
{
	int fd, r;

	unlink(aside); /* of a process with our pid that was killed here */
	fd = sys_open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return hm_err_errno(e, errno, "create %s", aside);
	r = fill_file(fd, l, generation, e);
	sys_close(fd);
	if (r < 0)
		unlink(aside);
	return r;
}

/* generation 0: only if there is none yet (-HM_EEXIST); else in place of whatever stands there. */
static int place(const char *path, const struct limits *l, uint64_t generation, struct hm_err *e)
{
	char aside[REGION_PATH_BYTES * 4];
	int r;

	if (hm_fmt(aside, sizeof aside, "%s.%d.new", path, (int)getpid()) >= sizeof aside)
		return hm_err_set(e, HM_EINVAL, "the path is too long");
	r = make_aside(aside, l, generation == 0 ? 1 : generation, e);
	if (r < 0)
		return r;
	if (generation == 0)
		r = link(aside, path) < 0 ? hm_err_errno(e, errno, "link") : 0;
	else
		r = rename(aside, path) < 0 ? hm_err_errno(e, errno, "rename") : 0;
	unlink(aside);
	return r;
}

static bool same_cards(const struct config *c, const struct limits *l)
{
	if (c->header.card_count != l->count)
		return false;
	for (size_t i = 0; i < l->count; i++) {
		if (strncmp(c->cards[i].uuid, l->cards[i].uuid, HM_UUID_BYTES) != 0)
			return false;
	}
	return true;
}

/* The counters stay; what the limits say now is written over what they said then. 1: does not fit. */
static int take_over(int fd, const struct limits *l, uint64_t *generation, struct hm_err *e)
{
	struct config c;

	if (sys_pread(fd, &c, sizeof c, 0) != (long)sizeof c)
		return 1;
	*generation = c.header.generation;
	if (l->count == 0)
		return 0; /* cards are added as they are met: region_map_card */
	if (!same_cards(&c, l))
		return 1;
	fill_config(&c, l, *generation);
	if (fchmod(fd, 0666) < 0 && errno != EPERM)
		return hm_err_errno(e, errno, "fchmod");
	return write_all(fd, &c, sizeof c, 0, e);
}

static int create(const char *path, const struct limits *l, struct hm_err *e)
{
	uint64_t generation = 0;
	struct region_header h;
	int fd, r;

	fd = region_open_file(path, true, &h, e);
	if (fd == -HM_ENOTFOUND) {
		r = place(path, l, 0, e);
		if (r != -HM_EEXIST)
			return r;
		fd = region_open_file(path, true, &h, e); /* another was faster */
	}
	if (fd == -HM_EPERM || fd == -HM_ENOTFOUND)
		return fd;
	r = 1;
	if (fd >= 0) {
		r = take_over(fd, l, &generation, e);
		sys_close(fd);
	}
	if (r == 1)
		r = place(path, l, generation + 1, e);
	return r;
}

int region_create(const char *path, const struct limits *limits, struct hm_err *e)
{
	int r;

	if (limits->count > HM_MAX_CARDS)
		return hm_err_set(e, HM_EINVAL, "make usage region %s: %zu cards", path, limits->count);
	r = create(path, limits, e);
	if (r < 0)
		hm_err_wrap(e, "make usage region %s", path);
	return r;
}
