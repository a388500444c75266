/* The tables made from hooks.def, and how a hook reaches the driver. */
#ifndef HM_VGPU_HOOKS_H
#define HM_VGPU_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks_gen.h"

/* One of the few names that libvgpu shows to the program. */
#define VGPU_EXPORT __attribute__((visibility("default")))

extern struct vgpu_real vgpu_real;
/* The driver's function; a plain load. */
#define REAL(name) __atomic_load_n(&vgpu_real.name, __ATOMIC_RELAXED)

extern const uint16_t entry_names[ENTRY_COUNT]; /* offsets into name_pool, in the order of the names */
extern void *const entry_ours[ENTRY_COUNT];
extern const char name_pool[];

/* Every export of the driver that our table knows, by base name, stream class and version. */
struct proc_row {
	uint16_t version; /* 1000 * major + 10 * minor */
	uint16_t base;    /* offset into name_pool */
	int16_t entry;    /* of the hook, or -1 */
	uint8_t suffix;   /* of the exported name, in proc_suffixes */
	uint8_t per_thread;
};
extern const struct proc_row proc_rows[];
extern const size_t proc_row_count;
extern const char proc_suffixes[][10];
enum { PROC_TABLE_VERSION = 13000 };

/* Is this hook switched off for a test? Only in a build of its own (HM_MUTATE, tools/mutate-hooks). */
#ifdef HM_MUTATE
bool mutate_off(const char *name);
#else
#define mutate_off(name) false
#endif

/* Looks the entry up in its driver library, if that is loaded, and fills its slot. False: the driver lacks it. */
bool entry_bind(enum vgpu_entry entry);
/* The driver's address of the entry; NULL: it lacks it. */
const void *entry_real(enum vgpu_entry entry);
/* The entry of this name, or -1. */
int entry_find(const char *name);

#endif
