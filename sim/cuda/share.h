/* Device memory that other processes can have: its pages are those of a memory file, which others open by a descriptor
 * that was sent to them, or by this process's number and descriptor. At the file's end, behind the memory, a note says
 * what it is. Who imports holds nothing on the card: all of it is charged to who allocated it, while that lives. Under
 * the lock of state.h. */
#ifndef HM_SIM_CUDA_SHARE_H
#define HM_SIM_CUDA_SHARE_H

#include "sim/cuda/state.h"

struct cu_region;

enum cu_share_kind { CU_SHARE_REGION = 1, CU_SHARE_PHYSICAL, CU_SHARE_POOL, CU_SHARE_MULTICAST };

struct cu_note {
	uint64_t magic;
	uint32_t kind; /* enum cu_share_kind */
	uint32_t card; /* the node's number */
	uint32_t pid;  /* with `id`: which memory it is */
	uint32_t handle_types;
	uint64_t id;
	uint64_t bytes; /* of memory, whole pages; 0 for a pool */
};

/* A memory file of note->bytes and, in a page of its own behind them, the note, whose magic this fills in; -1 where
 * there is none to be had. */
int cu_share_file(struct cu_note *note);
/* What a descriptor is, checked against the file's size; false where it is none of ours. */
bool cu_share_read(int fd, struct cu_note *out);
void *cu_share_map(int fd, uint64_t offset, uint64_t bytes); /* NULL: no addresses */
/* The device of this process that is the node's card; cu.count where it has none. */
unsigned cu_share_device(uint32_t card);

/* What an IPC handle or an exported pool pointer says; 64 bytes as both have. */
struct cu_ticket {
	uint64_t magic;
	uint32_t pid;
	int32_t fd;
	uint64_t id;
	uint64_t offset, size; /* the allocation, in its region's pages */
	uint64_t spare[3];
};
_Static_assert(sizeof(struct cu_ticket) == 64, "fits an IPC handle");

enum cu_ticket_kind { CU_TICKET_IPC = 1, CU_TICKET_POOL };

/* Makes the pages behind a region shared, and says how to find [offset, offset + size) of them. */
CUresult cu_ticket_write(struct cu_region *r, uint64_t offset, uint64_t size, enum cu_ticket_kind kind,
			 struct cu_ticket *out);
/* A region for what the ticket says, in use once more where this process has it already. */
CUresult cu_ticket_open(const struct cu_ticket *t, enum cu_ticket_kind kind, struct CUctx_st *ctx,
			struct cu_region **out);
/* One use less; the last frees it. */
void cu_import_close(struct cu_region *r);
/* A region over memory that is somebody else's: `bytes` of the file from offset on. NULL: no addresses. */
struct cu_region *cu_import_new(int fd, uint64_t offset, uint64_t bytes, struct CUctx_st *ctx, unsigned device);

#endif
