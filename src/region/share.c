/* The words that are written to a region from outside its container: by pread and pwrite, never by mapping. */
#include <errno.h>
#include <string.h>

#include "region/map.h"
#include "region/region.h"
#include "region/sys.h"

static int find_card(int fd, uint32_t count, const char *uuid, struct hm_err *e)
{
	struct region_card_config cards[HM_MAX_CARDS];

	if (sys_pread(fd, cards, sizeof cards, offsetof(struct region_layout, cards)) != (long)sizeof cards)
		return hm_err_set(e, HM_EPROTO, "cut");
	for (uint32_t i = 0; i < count; i++) {
		if (strncmp(cards[i].uuid, uuid, HM_UUID_BYTES) == 0)
			return (int)i;
	}
	return hm_err_set(e, HM_ENOTFOUND, "no card %s", uuid);
}

/* Opens the region; *at is where the card's words begin. */
static int open_card(const char *path, bool writable, const char *uuid, off_t *at, struct hm_err *e)
{
	struct region_header h;
	int fd = region_open_file(path, writable, &h, e), card;

	if (fd < 0)
		return fd;
	card = find_card(fd, h.card_count, uuid, e);
	if (card < 0) {
		sys_close(fd);
		hm_err_wrap(e, "usage region %s", path);
		return card;
	}
	*at = (off_t)(offsetof(struct region_layout, compute) + (size_t)card * sizeof(struct region_compute));
	return fd;
}

int region_share_read(const char *path, const char *uuid, uint64_t *spans_ns, struct hm_err *e)
{
	off_t at;
	int fd = open_card(path, false, uuid, &at, e);
	long n;

	if (fd < 0)
		return fd;
	n = sys_pread(fd, spans_ns, sizeof *spans_ns, at + (off_t)offsetof(struct region_compute, spans_ns));
	sys_close(fd);
	return n == (long)sizeof *spans_ns ? 0 : hm_err_set(e, HM_EPROTO, "usage region %s: cut", path);
}

/* Each word is 8 bytes at a multiple of 8, which the kernel copies at once: who has it mapped sees the old or the new.
 */
static bool put(int fd, off_t at, uint64_t word)
{
	return sys_pwrite(fd, &word, sizeof word, at) == (long)sizeof word;
}

int region_share_write(const char *path, const char *uuid, uint64_t alpha, int64_t error_ns, struct hm_err *e)
{
	off_t at;
	int fd = open_card(path, true, uuid, &at, e), r = 0;

	if (fd < 0)
		return fd;
	if (!put(fd, at + (off_t)offsetof(struct region_compute, alpha), alpha) ||
	    !put(fd, at + (off_t)offsetof(struct region_compute, error_ns), (uint64_t)error_ns))
		r = hm_err_errno(e, errno, "usage region %s: write", path);
	sys_close(fd);
	return r;
}
