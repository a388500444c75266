/* The agent's own record of who holds what: claims (model/claim_text.h), one file each, loaded at start. */
#ifndef HM_AGENT_CLAIMS_CLAIMS_H
#define HM_AGENT_CLAIMS_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/claim_text.h"

struct claims;

/* The folder is made where missing. Files that cannot be read are named in the log and left where they are: their
 * number counts as used (claims_max_number), and PreStart writes them anew. */
int claims_open(const char *folder, struct claims **out, struct hm_err *e) HM_MUST_USE;
void claims_free(struct claims *s);
HM_DEFINE_AUTO(claims, claims_free);

size_t claims_count(const struct claims *s);
const struct claim *claims_at(const struct claims *s, size_t i);          /* in no order; valid until the next change */
const struct claim *claims_find(const struct claims *s, uint64_t number); /* NULL where absent */
/* The first claim that has not ended and holds this card, or this MIG device; NULL: none. */
const struct claim *claims_holder(const struct claims *s, const char *uuid);
uint64_t claims_max_number(const struct claims *s); /* 0 where there was none */

/* Takes over *c (emptied) and writes its file, unless one with the same content is there (write, fsync,
 * rename). An older claim of this number is replaced. On failure nothing changed and *c is the caller's still. */
int claims_put(struct claims *s, struct claim *c, struct hm_err *e) HM_MUST_USE;
/* Forgets it and removes the file; absent is fine. */
int claims_remove(struct claims *s, uint64_t number, struct hm_err *e) HM_MUST_USE;

/* A deep copy. */
int claim_copy(const struct claim *from, struct claim *out, struct hm_err *e) HM_MUST_USE;
bool claim_has_device(const struct claim *c, const char *id);
/* Exactly these devices, in any order. */
bool claim_has_set(const struct claim *c, const char *const *ids, size_t count);

#endif
