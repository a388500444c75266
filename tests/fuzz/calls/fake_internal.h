/* Between the files of the fake driver. */
#ifndef HM_FUZZ_CALLS_FAKE_INTERNAL_H
#define HM_FUZZ_CALLS_FAKE_INTERNAL_H

#include "fuzz/calls/fake.h"
#include "vgpu/hooks.h"

enum fake_kind {
	FAKE_NONE,
	FAKE_CONTEXT,
	FAKE_POINTER,
	FAKE_SMALL,
	FAKE_POOLED,
	FAKE_IMPORT,
	FAKE_HANDLE,
	FAKE_MAPPING,
	FAKE_BIND,
	FAKE_ARRAY,
	FAKE_POOL,
	FAKE_GRAPH,
	FAKE_EXEC,
	FAKE_MODULE,
};

/* An object's address or handle tells its number, and is used again as soon as the object is gone. */
struct fake_object {
	enum fake_kind kind;
	int card;
	uint64_t context; /* ends with it; 0: with none */
	uint64_t bytes;   /* taken; of a small one: asked for */
	uint64_t at;      /* of a small one; of an import that has the address of an allocation */
	uint64_t other;   /* a mapping's handle, a pooled pointer's pool */
	uint64_t reserved, used;
	unsigned refs, mappings;
	bool doomed, strict;
};

/* Small allocations lie in pages of an address range for each card. */
#define FAKE_CARD_SPAN (UINT64_C(1) << 40)

struct fake {
	struct fake_world *world;
	struct fake_process *self;
	struct fake_object objects[FAKE_OBJECTS];
	unsigned page_refs[FAKE_CARDS][FAKE_PAGES];
	uint64_t fill[FAKE_CARDS]; /* the next small allocation's place, from the first page's begin */
	struct fake_object graphs[FAKE_CARDS];
	uint64_t current;
	uint64_t primary[FAKE_CARDS], default_pool[FAKE_CARDS];
	unsigned primary_refs[FAKE_CARDS];
	CUresult fail;
	bool keep;
	uint64_t alias;
	bool failed;
	unsigned die_at;
};
extern struct fake fake;

struct fake_object *fake_new(enum fake_kind kind, int card);
uint64_t fake_handle(const struct fake_object *o);
/* NULL: nothing of that kind has this handle. */
struct fake_object *fake_find(enum fake_kind kind, uint64_t handle);
/* Takes bytes of a card, or answers the failure that was asked for. */
CUresult fake_take(int card, uint64_t bytes, bool strict);
void fake_give(int card, uint64_t bytes, bool strict);
/* The failure of a free, if it was asked for. */
bool fake_keeps(void);
/* A handle with neither reference nor mapping goes, and with a multicast object what is bound to it. */
void fake_drop_unused(struct fake_object *handle);
/* Frees what has `context`, or one object. */
void fake_drop(struct fake_object *o);
void fake_drop_context(uint64_t context);
int fake_current_card(void);
void fake_put_back(struct fake_object *pooled);

/* {entry, function} of each file, ended by NULL. */
struct fake_entry {
	enum vgpu_entry entry;
	void *function;
};
#define FAKE_ENTRY(name)                                                                                               \
	{                                                                                                              \
		ENTRY_##name, (void *)fake_##name                                                                      \
	} /* NOLINT */
extern const struct fake_entry fake_memory_entries[], fake_context_entries[], fake_pool_entries[], fake_graph_entries[],
	fake_multicast_entries[];

#endif
