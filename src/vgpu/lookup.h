/* The names that libvgpu stands in for: those of hooks.def that are hooked, and its own three (dlsym, dlvsym, dlopen).
 */
#ifndef HM_VGPU_LOOKUP_H
#define HM_VGPU_LOOKUP_H

#include "vgpu/hooks.h"

enum { LOOKUP_OWN_NAMES = 3, LOOKUP_NAMES = LOOKUP_OWN_NAMES + ENTRY_COUNT };

/* The name's number, below LOOKUP_NAMES; negative: not one of ours. */
int lookup_index(const char *name);
const char *lookup_name(int index);
/* Our function for one that libc or the driver has by this name and that was found at `found`; NULL: what was found is
 * somebody else's (or nothing), and stays so. Opens nothing and looks nothing up. */
void *lookup_substitute(int index, const void *found);

#endif
