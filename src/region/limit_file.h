/* The limit file: what one container may use. Text; docs/contracts/limits.md. Written by the agent, read by libvgpu.
 *
 *     hami-vgpu-limits 1
 *     gpu=<uuid> memory=<bytes> cores=<percent>      one line a card, at most HM_MAX_CARDS
 *     priority=<0|1>                                 optional, default 1 (0 is high)
 *     policy=<default|force|disable>                 optional, compute limiting
 *     oversubscribe=<0|1>                            optional, default 0
 *     end
 *
 * A missing "end", an unknown key, a bad number, a doubled key or card: the whole file is refused, and libvgpu then
 * refuses every allocation. No heap, no I/O. */
#ifndef HM_REGION_LIMIT_FILE_H
#define HM_REGION_LIMIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"
#include "core/err.h"

enum { LIMIT_FILE_MAX_BYTES = 8192 };

enum limit_policy { LIMIT_POLICY_DEFAULT, LIMIT_POLICY_FORCE, LIMIT_POLICY_DISABLE };

struct limit_card {
	char uuid[HM_UUID_BYTES];
	uint64_t memory_bytes; /* 1 and up */
	unsigned cores;        /* percent, 1..100 */
};

struct limits {
	struct limit_card cards[HM_MAX_CARDS];
	size_t count;
	unsigned priority;
	enum limit_policy policy;
	bool oversubscribe;
};

/* -HM_EPROTO with line and reason; -HM_EUNSUPPORTED for an unknown version. */
int limits_parse(const char *text, size_t n, struct limits *out, struct hm_err *e) HM_MUST_USE;
/* The file's text; returns its length, or 0 where cap (LIMIT_FILE_MAX_BYTES always does) is too small. */
size_t limits_write(const struct limits *l, char *out, size_t cap);

#endif
