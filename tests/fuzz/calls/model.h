/* What a process of the fuzz holds, by the rules of docs/enforcement.md, and the steps that change it. */
#ifndef HM_FUZZ_CALLS_MODEL_H
#define HM_FUZZ_CALLS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/macros.h"
#include "fuzz/calls/fake.h"

enum object_kind {
	OBJECT_NONE,
	OBJECT_POINTER,
	OBJECT_POOLED,
	OBJECT_IPC,    /* another's memory, opened */
	OBJECT_BUFFER, /* the same, of external memory */
	OBJECT_ARRAY,
	OBJECT_MIPMAP,
	OBJECT_HANDLE,
	OBJECT_IMPORT,  /* another's handle */
	OBJECT_ADDRESS, /* reserved for a mapping; `other`: the handle that is mapped there */
	OBJECT_MULTICAST,
	OBJECT_BIND, /* at offset `bytes` of `other`; `used`: the memory's handle */
	OBJECT_POOL,
	OBJECT_EXEC,
	OBJECT_MODULE,
	OBJECT_CONTEXT,
};

struct object {
	enum object_kind kind;
	int card;
	CUdeviceptr handle;
	uint64_t context; /* ends with it; 0: with none */
	uint64_t bytes;   /* asked for; of an instantiated graph: what its next launch is charged first */
	uint64_t other;
	uint64_t used, reserved, looked; /* a pool's; `looked`: reserved when libvgpu may have looked last */
	unsigned refs, mappings;         /* a pointer's: imports that have its address */
	bool doomed;                     /* a destroyed pool that has allocations */
};

enum { OBJECTS = 64, PAGES = FAKE_PAGES };

struct model {
	struct object objects[OBJECTS];
	unsigned page_refs[FAKE_CARDS][PAGES];
	struct object graphs[FAKE_CARDS]; /* what the graphs of a card hold */
	uint64_t default_pool[FAKE_CARDS];
	uint64_t overhead_peak[FAKE_CARDS]; /* of contexts and code, since there was none */
	uint64_t current;
	unsigned primary_refs[FAKE_CARDS];
	bool managed, may_manage;
};

/* This process. */
struct me {
	struct fake_world *world;
	unsigned index;
	bool alone; /* no other process runs while this one does */
	uint64_t random;
	uint64_t seed, step;
	const char *doing;
	struct model m;
};
extern struct me me;

uint32_t random_below(uint32_t n);
/* Says what went wrong, with seed and step, and ends the process. */
_Noreturn void fail(const char *fmt, ...) HM_PRINTF(1, 2);

struct object *object_new(enum object_kind kind, int card);
/* One of this kind; NULL: there is none. */
struct object *object_any(enum object_kind kind);
struct object *object_by_handle(enum object_kind kind, uint64_t handle);
/* The card of the current context; -1: none. */
int current_card(void);
uint64_t round_up(uint64_t bytes, uint64_t unit);
/* A small allocation has come (1) or gone (-1). */
void pages_change(const struct object *o, int by);

/* An answer of a call that needs `bytes` of a card: true where it succeeded; a failure must be the one that was asked
 * for, or a refusal of what does not fit. */
bool granted(CUresult rc, int card, uint64_t bytes);
void expect(CUresult rc, CUresult wanted);
/* libvgpu has looked at all pools. */
void pools_looked_at(void);
/* Region, model and fake driver agree. */
void check_books(void);
/* After a query of the card, which returns the charge of the dead. */
void check_sum(int card);

/* Each is one step: a name and what it does. */
struct step {
	const char *name;
	unsigned weight;
	void (*run)(void);
};
extern const struct step memory_steps[], device_steps[], multicast_steps[];
/* A handle with neither reference nor mapping goes, and with a multicast object what is bound to it. */
void drop_unused_handle(struct object *o);
/* Frees all that is left, and looks whether nothing is charged any more. */
void release_all(void);
void release_memory(void);
void forget_context(uint64_t context);
void free_pooled(struct object *o);

#endif
