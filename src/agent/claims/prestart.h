/* Which containers a PreStartContainer call is for, and whether they may start. The call names device ids alone, and
 * several containers may hold the same set (a finished init container's devices are used again), so the answer is all
 * of them: each Allocate gave a name of its own, and the kubelet's checkpoint ties name and container. Pure.
 *
 * 1. Entries of our resource with exactly these ids in the checkpoint: the answer that the kubelet keeps with them has
 *    the number, in a CDI name of our kind (late binding) or in the path of the usage folder that it mounts (classic).
 * 2. No such entry, or no readable checkpoint: Allocate calls of this run with the same set, else claims with it.
 * 3. Nothing: an error that the kubelet tries again after.
 * 4. A slot that another pod's live container holds by our claims (a kubelet that lost its checkpoint gives it out
 *    again): an error with the holder's name until it ends. */
#ifndef HM_AGENT_CLAIMS_PRESTART_H
#define HM_AGENT_CLAIMS_PRESTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "agent/claims/pending.h"
#include "core/err.h"
#include "kubelet/checkpoint.h"

enum { PRESTART_MAX_TARGETS = 64 };

struct prestart_facts {
	const struct checkpoint *checkpoint; /* NULL: it could not be read */
	const char *checkpoint_trouble;      /* then: why */
	const char *resource;
	const char *alloc_dir; /* the folder of the numbers' folders */
	bool others_start;     /* containers with another plugin's answer start with what that gave them */
	const struct claims *claims;
	const struct pending *pending;
};

struct prestart_target {
	uint64_t number;
	bool classic;                     /* the answer that the kubelet keeps has everything in it */
	char pod_uid[64], container[256]; /* "" where not known */
};

/* Fills out (PRESTART_MAX_TARGETS), *count of them, each number once; 0 where others_start holds of it. -HM_EAGAIN
 * where nobody is known to hold exactly these ids, -HM_ELIMIT for more targets than there is room. */
int prestart_find(const struct prestart_facts *f, const char *const *ids, size_t id_count, struct prestart_target *out,
		  size_t *count, struct hm_err *e) HM_MUST_USE;

/* -HM_EAGAIN where one of the ids is held by a claim that is none of the targets and of another pod, and that lives: by
 * the checkpoint, or by `alive`, which is asked for nothing else. The message names slot and holder. */
int prestart_check_holders(const struct prestart_facts *f, const char *const *ids, size_t id_count,
			   const struct prestart_target *targets, size_t count,
			   bool (*alive)(const struct claim *c, void *arg), void *arg, struct hm_err *e) HM_MUST_USE;

/* The number in "hami.io/vgpu=v.<number>"; false for other names. */
bool prestart_parse_name(const char *cdi_name, uint64_t *number) HM_MUST_USE;
/* The number that the entry's answer carries; false where it is none of ours. *classic: everything is in that answer.
 */
bool prestart_entry_number(const struct checkpoint_entry *entry, const char *alloc_dir, uint64_t *number,
			   bool *classic) HM_MUST_USE;
/* True where an entry carries this number. */
bool prestart_is_listed(const struct checkpoint *c, const char *alloc_dir, uint64_t number);

#endif
