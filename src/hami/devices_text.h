/* What HAMi's scheduler gave a pod's containers: the texts of hami.io/vgpu-devices-allocated and -to-allocate.
 *
 *     text  := entry { ";" entry }      one entry a container, init containers first; empty where it has no GPU
 *     entry := { share ":" }            share := UUID "," type "," MiB "," percent
 *
 * Read as HAMi reads: a part without a comma is skipped, more than four fields are ignored, every ";" makes one more
 * entry (so the usual trailing one leaves an empty entry at the end). Schedulers leave out empty entries in some
 * versions: position alone doesn't say which container an entry is for. docs/contracts/hami-annotations.md */
#ifndef HM_HAMI_DEVICES_TEXT_H
#define HM_HAMI_DEVICES_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"

enum {
	DEVICES_TEXT_MAX_BYTES = 256 * 1024, /* what the API server lets all annotations of an object have together */
	DEVICES_TYPE_BYTES = 64,
};

/* As it was written, unchecked: a UUID that no card has, "" or a negative number may stand here. */
struct device_share {
	char uuid[HM_UUID_BYTES];
	char type[DEVICES_TYPE_BYTES]; /* HAMI_DEVICE_TYPE for NVIDIA's cards */
	int32_t memory_mib;
	int32_t cores; /* percent; 0: no limit */
};

struct devices_entry {
	size_t first, count; /* shares[first .. first + count) */
};

struct pod_devices {
	struct device_share *shares; /* owned */
	size_t share_count, share_cap;
	struct devices_entry *entries; /* owned */
	size_t entry_count, entry_cap;
};

void pod_devices_fini(struct pod_devices *d);
static inline void pod_devices_auto_fini(struct pod_devices *d)
{
	pod_devices_fini(d);
}
/* A local: hm_auto_pod_devices d = { 0 }; */
#define hm_auto_pod_devices __attribute__((cleanup(pod_devices_auto_fini))) struct pod_devices

/* text NULL (no such annotation) is -HM_ENOTFOUND; "" is one empty entry. -HM_EPROTO with HAMi's reason: fewer than
 * four fields, a number outside int32; -HM_ELIMIT where the text or a word of it is too long. *out needs
 * pod_devices_fini on success. */
int devices_text_parse(const char *text, struct pod_devices *out, struct hm_err *e) HM_MUST_USE;

/* Appends the text: each share with ":", each entry with ";" behind it, as HAMi writes it. What was parsed from HAMi's
 * own text comes out one ";" longer, as it does in HAMi. */
void devices_text_write(const struct pod_devices *d, struct str *out);

/* Entries that aren't empty. */
size_t pod_devices_filled(const struct pod_devices *d);
/* Index of the k-th entry (from 0) that isn't empty; SIZE_MAX where there are not so many. */
size_t pod_devices_find(const struct pod_devices *d, size_t k);
/* The entry becomes empty; an index beyond the end is ignored. */
void pod_devices_erase(struct pod_devices *d, size_t entry);

#endif
