/* Which objects exist, as far as we have been told: name, UID and version of each, about 260 bytes. So that after a
 * list the differences are known, and only they are told. */
#ifndef HM_KUBE_KNOWN_H
#define HM_KUBE_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kube/object.h"

struct kube_known;

/* An object that is known by its metadata alone: object.tree is NULL. */
struct kube_known_object {
	struct kube_object object;
	char text[KUBE_KEY_BYTES]; /* what the object's name and namespace point into */
	void *owned;               /* and the rest */
};

enum kube_known_change {
	KNOWN_SAME,  /* this very version is known */
	KNOWN_NEW,   /* there was none of this name, or an older version; now it is known */
	KNOWN_OTHER, /* one with this name and another UID is known: take that out, then put again */
};

struct kube_known *kube_known_new(void); /* NULL where memory is short */
void kube_known_free(struct kube_known *k);
HM_DEFINE_AUTO(kube_known, kube_known_free);
size_t kube_known_count(const struct kube_known *k);

/* Each object put bears the mark of its last put. -HM_ENOMEM changes nothing. */
int kube_known_put(struct kube_known *k, const struct kube_object *o, uint32_t mark, enum kube_known_change *change,
		   struct hm_err *e) HM_MUST_USE;

/* Takes out the one with this key: where `uid` is given, only if it has it. False where there is none. *out is freed
 * with kube_known_object_fini, and may not move. */
bool kube_known_take(struct kube_known *k, const char *key, const char *uid, struct kube_known_object *out);

/* Takes out one that bears another mark than this; start with *at = 0 and put nothing in between. False: none is left.
 */
bool kube_known_take_unmarked(struct kube_known *k, size_t *at, uint32_t mark, struct kube_known_object *out);

void kube_known_object_fini(struct kube_known_object *o);

#endif
