/* Which entry of a pod's device text is which container's, where the text may be any scheduler's: HAMi writes an entry
 * for each container since v2.9, v2.10.0 leaves out empty ones, v2.8 and older wrote none for init containers, and no
 * text says which of them it is. Pure. */
#ifndef HM_HAMI_ENTRY_ORDER_H
#define HM_HAMI_ENTRY_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hami/devices_text.h"

/* cards[i]: how many the i-th container asks for, init containers (`init_count` of them, sidecars too) first.
 * container_of has room for d->entry_count; each filled entry gets its container, in rising order. The first of these
 * that fits:
 *   - as many entries as containers, none filled whose container asks for nothing: by position;
 *   - as many filled entries as containers that ask: one after another;
 *   - the same two for app containers alone.
 * False: none does, and container_of is what is safe to count: all entries run together, `containers` and up. */
bool entry_order(const struct pod_devices *d, const uint32_t *cards, size_t containers, size_t init_count,
		 size_t *container_of);

/* How many entries the text has: the last ";" ends one and begins none. */
size_t entry_order_written(const struct pod_devices *d);

/* An entry with at least one UUID; ",,0,0:" of some old versions is an empty one. */
bool entry_is_filled(const struct pod_devices *d, size_t entry);

#endif
