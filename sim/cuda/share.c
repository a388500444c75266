#include "sim/cuda/share.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "sim/cuda/space.h"

#define NOTE_MAGIC 0x454d4f53494d4148ULL
#define TICKET_MAGIC 0x544b4353494d4148ULL
enum { NOTE_BYTES = 4096 };

int cu_share_file(struct cu_note *note)
{
	hm_auto_fd fd = memfd_create("hami-sim", MFD_CLOEXEC);

	note->magic = NOTE_MAGIC;
	note->pid = (uint32_t)getpid();
	if (fd < 0 || ftruncate(fd, (off_t)(note->bytes + NOTE_BYTES)) != 0 ||
	    pwrite(fd, note, sizeof *note, (off_t)note->bytes) != (ssize_t)sizeof *note)
		return -1;
	return hm_steal_fd(&fd);
}

bool cu_share_read(int fd, struct cu_note *out)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < NOTE_BYTES)
		return false;
	uint64_t bytes = (uint64_t)st.st_size - NOTE_BYTES;

	return pread(fd, out, sizeof *out, (off_t)bytes) == (ssize_t)sizeof *out && out->magic == NOTE_MAGIC &&
	       out->bytes == bytes;
}

void *cu_share_map(int fd, uint64_t offset, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	return p != MAP_FAILED ? p : NULL;
}

unsigned cu_share_device(uint32_t card)
{
	unsigned i = 0;

	while (i < cu.count && cu.devices[i].card != card)
		i++;
	return i;
}

/* Moves what is in a region into the file, page by page and only what is not zero, so that an idle gigabyte stays
 * uncommitted; then puts the file in its place. */
static bool move_into(struct cu_region *r, int fd)
{
	static const char zero[4096];
	char *to = cu_share_map(fd, 0, r->bytes);

	if (to == NULL)
		return false;
	for (uint64_t at = 0; at < r->bytes; at += sizeof zero)
		if (memcmp(r->backing + at, zero, sizeof zero) != 0)
			memcpy(to + at, r->backing + at, sizeof zero);
	munmap(to, r->bytes);
	return mmap(r->backing, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}

CUresult cu_ticket_write(struct cu_region *r, uint64_t offset, uint64_t size, enum cu_ticket_kind kind,
			 struct cu_ticket *out)
{
	if (r->fd < 0) {
		struct cu_note note = {
			.kind = CU_SHARE_REGION, .card = cu.devices[r->device].card, .id = r->id, .bytes = r->bytes
		};
		hm_auto_fd fd = cu_share_file(&note);

		if (fd < 0 || !move_into(r, fd))
			return CUDA_ERROR_OUT_OF_MEMORY;
		r->fd = hm_steal_fd(&fd);
	}
	*out = (struct cu_ticket) { .magic = TICKET_MAGIC + kind,
				    .pid = (uint32_t)getpid(),
				    .fd = r->fd,
				    .id = r->id,
				    .offset = offset,
				    .size = size };
	return CUDA_SUCCESS;
}

struct cu_region *cu_import_new(int fd, uint64_t offset, uint64_t bytes, struct CUctx_st *ctx, unsigned device)
{
	struct cu_region *r = cu_region_new(CU_REGION_IMPORT, device, bytes, 0, 0);

	if (r == NULL)
		return NULL;
	r->backing = cu_share_map(fd, offset, r->bytes);
	if (r->backing == NULL) {
		cu_region_free(r);
		return NULL;
	}
	r->ctx = ctx;
	r->size = bytes;
	r->import.opens = 1;
	return r;
}

static struct cu_region *opened_before(const struct cu_ticket *t)
{
	LIST_FOR_EACH (&cu_regions, it) {
		struct cu_region *r = HM_CONTAINER(it, struct cu_region, link);

		if (r->kind == CU_REGION_IMPORT && r->import.pid == t->pid && r->import.id == t->id &&
		    r->import.offset == t->offset)
			return r;
	}
	return NULL;
}

CUresult cu_ticket_open(const struct cu_ticket *t, enum cu_ticket_kind kind, struct CUctx_st *ctx,
			struct cu_region **out)
{
	struct cu_note note;
	char path[64];

	if (t->magic != TICKET_MAGIC + kind)
		return CUDA_ERROR_INVALID_VALUE;
	if (t->pid == (uint32_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT; /* not where it comes from */
	*out = opened_before(t);
	if (*out != NULL) {
		(*out)->import.opens++;
		return CUDA_SUCCESS;
	}
	snprintf(path, sizeof path, "/proc/%u/fd/%d", t->pid, t->fd);
	hm_auto_fd fd = open(path, O_RDWR | O_CLOEXEC);

	/* The descriptor may by now be another file, or none: the memory was freed, the process is gone. */
	if (!cu_share_read(fd, &note) || note.pid != t->pid || note.id != t->id || note.kind != CU_SHARE_REGION ||
	    t->size == 0 || t->size > note.bytes || t->offset > note.bytes - t->size)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned device = cu_share_device(note.card);

	if (device == cu.count)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = cu_import_new(fd, 0, note.bytes, ctx, device);
	if (*out == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->size = t->size;
	(*out)->import.pid = t->pid;
	(*out)->import.id = t->id;
	(*out)->import.offset = t->offset;
	return CUDA_SUCCESS;
}

void cu_import_close(struct cu_region *r)
{
	if (--r->import.opens == 0)
		cu_region_free(r);
}
