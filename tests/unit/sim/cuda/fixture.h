/* A simulated node of its own for a test program: node.yaml's two cards on a virtual clock. */
#ifndef HM_TESTS_SIM_CUDA_FIXTURE_H
#define HM_TESTS_SIM_CUDA_FIXTURE_H

#include <stddef.h>
#include <sys/types.h>

#include "abi/cuda_api.h"
#include "harness/unit.h"

#define MIB ((size_t)1 << 20)
#define PAGE (2 * MIB)

/* Of node.yaml. */
#define CARD_BYTES (1024 * MIB)
#define RESERVED_BYTES (24 * MIB)
#define CONTEXT_BYTES (100 * MIB)
#define ROOM_BYTES (CARD_BYTES - RESERVED_BYTES - CONTEXT_BYTES) /* for one process with one context */
enum { CARDS = 2, SMS = 40, THREADS_PER_SM = 1024, BLOCKS_PER_SM = 16 };

int node_up(void **state);   /* group setup: the daemon runs, HAMI_SIM_DIR says where */
int node_down(void **state); /* group teardown */
int cuda_up(void **state);   /* as node_up, and cuInit, and card 0's primary context is current */

/* For each test: what the card gives away must be back at its end. */
int context_up(void **state);   /* retains and sets card 0's primary context */
int context_down(void **state); /* releases it, and fails if the card holds anything */

#define assert_cuda(call) assert_int_equal(call, CUDA_SUCCESS)

size_t free_bytes(void); /* cuMemGetInfo */

/* Our own programs, by their path; stdin and stdout as pipes. */
struct program {
	pid_t pid;
	int in, out;
};
void program_start(struct program *p, const char *path, const char *const *args);
void program_line(struct program *p, char *line, size_t cap);
int program_end(struct program *p); /* closes its stdin and waits: the exit status, or -signal */

#endif
