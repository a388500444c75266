/* Allocate calls of this run whose container has not started: number and device ids, in memory. Where the kubelet's
 * checkpoint cannot be read they say which numbers belong to a set of ids. */
#ifndef HM_AGENT_CLAIMS_PENDING_H
#define HM_AGENT_CLAIMS_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"

enum { PENDING_MAX = 1024 }; /* the oldest goes first */

struct pending_item {
	uint64_t number, since_ms;
	char **ids; /* owned */
	size_t id_count;
};

struct pending;

struct pending *pending_new(void); /* NULL where memory is short */
void pending_free(struct pending *p);
HM_DEFINE_AUTO(pending, pending_free);

int pending_add(struct pending *p, uint64_t number, const char *const *ids, size_t count, uint64_t now_ms,
		struct hm_err *e) HM_MUST_USE;
void pending_remove(struct pending *p, uint64_t number); /* absent is fine */
size_t pending_count(const struct pending *p);
const struct pending_item *pending_at(const struct pending *p, size_t i); /* oldest first */
bool pending_has_set(const struct pending_item *item, const char *const *ids, size_t count);

#endif
