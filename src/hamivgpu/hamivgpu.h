/* libhamivgpu: what a node with vGPUs looks like, for tools: cards, slots, who holds them and what they use.
 *
 *     struct hamivgpu *h = NULL;
 *     struct hamivgpu_error e;
 *
 *     if (hamivgpu_open(NULL, &h, &e) < 0)
 *         errx(1, "%s", e.message);
 *     for (size_t i = 0; i < hamivgpu_card_count(h); i++)
 *         puts(hamivgpu_card(h, i)->uuid);
 *     hamivgpu_close(h);
 *
 * Three sources, each of which may be missing while the others still answer:
 *   driver   NVML, loaded with dlopen: cards, their memory and load, processes (pids of the host)
 *   agent    the state folder that hami-device-plugin writes: how cards are cut, who holds which slots
 *   region   one shared file a container: what its processes have allocated (pids of the container)
 * Nothing is ever written and no daemon is asked. Memory is in bytes, time in milliseconds since 1970.
 *
 * Ownership: what a function returns belongs to the handle and is valid until hamivgpu_refresh or hamivgpu_close. Text
 * is NUL-terminated; names of pods and processes may hold any byte: escape them before you print them. Threads: one
 * handle, one thread at a time. NVML may hang in a sick driver, and open and refresh with it. Errors: functions that
 * can fail return 0 or a negative hamivgpu_code and fill *error (which may be NULL). */
#ifndef HAMIVGPU_HAMIVGPU_H
#define HAMIVGPU_HAMIVGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HAMIVGPU_API __attribute__((visibility("default")))

enum hamivgpu_code {
	HAMIVGPU_OK = 0,
	HAMIVGPU_NO_MEMORY = 1,
	HAMIVGPU_INVALID = 2,       /* an argument */
	HAMIVGPU_NOT_FOUND = 3,     /* no driver library, no state folder, no file */
	HAMIVGPU_NOT_READY = 4,     /* the driver is there, but does not work yet */
	HAMIVGPU_NO_PERMISSION = 5, /* to load, open or read it */
	HAMIVGPU_UNSUPPORTED = 6,   /* a version that this library does not read */
	HAMIVGPU_BROKEN = 7,        /* contents that do not follow their format */
	HAMIVGPU_FAILED = 8,        /* anything else; the message says what */
};

struct hamivgpu_error {
	int code; /* enum hamivgpu_code, positive */
	char message[512];
};

/* Numbers that no source gives. */
#define HAMIVGPU_UNKNOWN UINT64_MAX

struct hamivgpu_options {
	size_t size;              /* sizeof(struct hamivgpu_options): it may grow */
	const char *state_dir;    /* NULL: /var/lib/hami-vgpu */
	const char *nvml_library; /* NULL: libnvidia-ml.so.1, found by the loader */
	const char *proc_dir;     /* NULL: /proc */
};

struct hamivgpu; /* a handle with one snapshot of the node */

/* Takes a first snapshot. A missing source is no failure: ask hamivgpu_driver_state and hamivgpu_agent_state. options
 * may be NULL. -HAMIVGPU_NO_MEMORY, -HAMIVGPU_INVALID. *out is closed by hamivgpu_close. */
HAMIVGPU_API int hamivgpu_open(const struct hamivgpu_options *options, struct hamivgpu **out,
			       struct hamivgpu_error *error);
HAMIVGPU_API void hamivgpu_close(struct hamivgpu *h); /* NULL is fine */

/* Takes a new snapshot; the old one stays where this fails (-HAMIVGPU_NO_MEMORY). A driver that was missing is tried
 * again. */
HAMIVGPU_API int hamivgpu_refresh(struct hamivgpu *h, struct hamivgpu_error *error);

/* HAMIVGPU_OK, or why the source is missing. */
HAMIVGPU_API const struct hamivgpu_error *hamivgpu_driver_state(const struct hamivgpu *h);
HAMIVGPU_API const struct hamivgpu_error *hamivgpu_agent_state(const struct hamivgpu *h);

struct hamivgpu_node {
	/* driver */
	char driver_version[80]; /* "" unknown */
	int cuda_version;        /* 1000 x major + 10 x minor; 0 unknown */
	/* agent; "" and 0 where it is missing */
	char slicing[16];        /* "static", "dynamic" */
	char binding[16];        /* "late", "classic" */
	uint64_t slots_per_card; /* as configured */
	uint64_t slot_memory_mb; /* as configured; 0: card memory / slots */
	uint64_t agent_pid;      /* in the agent's own pid namespace */
};
HAMIVGPU_API const struct hamivgpu_node *hamivgpu_node(const struct hamivgpu *h);

struct hamivgpu_card {
	char uuid[64];
	char model[96];        /* driver; "" unknown */
	char pci_bus_id[32];   /* driver; "" unknown */
	int index;             /* driver; -1: only the agent knows this card */
	int minor;             /* driver: /dev/nvidia<minor>; -1 */
	int numa_node;         /* driver; -1 unknown */
	bool mig_enabled;      /* driver */
	uint64_t memory_total; /* driver; HAMIVGPU_UNKNOWN */
	uint64_t memory_used;  /* driver, by all processes; HAMIVGPU_UNKNOWN */
	uint64_t reserved;     /* driver, of memory_total: kept by driver and firmware; 0 unknown */
	int busy_percent;      /* driver; -1 unknown */
	unsigned slots;        /* agent; 0: not cut into slots */
	unsigned slots_used;   /* agent, by claims that have not ended */
	uint64_t slot_memory;  /* agent; 0 */
	unsigned slot_cores;   /* agent, percent; 0 */
};
HAMIVGPU_API size_t hamivgpu_card_count(const struct hamivgpu *h);
/* The driver's cards in its order, then those that only the agent knows. NULL beyond the end. */
HAMIVGPU_API const struct hamivgpu_card *hamivgpu_card(const struct hamivgpu *h, size_t i);

/* What a claim has of one card. */
struct hamivgpu_share {
	char uuid[64];
	int card;             /* which hamivgpu_card; -1: no source knows it any more */
	unsigned slots;       /* agent: how many */
	unsigned first_slot;  /* agent: the number in the container's HAMI_VGPU_UUID */
	unsigned cores;       /* agent, percent */
	uint64_t memory;      /* agent: the limit */
	uint64_t memory_used; /* region; HAMIVGPU_UNKNOWN */
	uint64_t memory_peak; /* region; HAMIVGPU_UNKNOWN */
	uint64_t refused;     /* region, allocations over the limit; HAMIVGPU_UNKNOWN */
	/* region: allocations beyond the card's memory (oversubscription), and their bytes, ever; HAMIVGPU_UNKNOWN */
	uint64_t spilled, spilled_bytes;
};

enum { HAMIVGPU_MAX_SHARES = 16 };

/* A process of a container, as its region says. */
struct hamivgpu_member {
	uint32_t pid;                              /* in the container */
	uint64_t start_time;                       /* clock ticks since boot */
	uint64_t pid_namespace;                    /* inode; 0 and 1: unknown */
	uint64_t memory_used[HAMIVGPU_MAX_SHARES]; /* one a share, in their order */
};

/* Who holds what. Source: agent, but for usage (region). */
struct hamivgpu_claim {
	uint64_t number;
	char state[16];                                                      /* "allocated", "active", "ended" */
	char pod_uid[64], pod_namespace[256], pod_name[256], container[256]; /* "" where not known */
	char resource[256];
	char cdi[64]; /* "" in classic binding */
	uint64_t created_ms;
	const struct hamivgpu_share *shares;
	size_t share_count;
	struct hamivgpu_error usage; /* HAMIVGPU_OK, or why there is none */
	const struct hamivgpu_member *members;
	size_t member_count;
	uint64_t troubles; /* region: what libvgpu had to complain of */
	char last_trouble[128];
};
HAMIVGPU_API size_t hamivgpu_claim_count(const struct hamivgpu *h);
/* By number. NULL beyond the end. */
HAMIVGPU_API const struct hamivgpu_claim *hamivgpu_claim(const struct hamivgpu *h, size_t i);

/* A process on a card: from the driver, tied to its claim by pid, start time and pid namespace; and members of regions
 * that the driver does not show. */
struct hamivgpu_process {
	uint64_t pid;           /* driver: of the host; 0: the driver does not show it */
	char name[64];          /* /proc/<pid>/comm; "" unknown */
	int card;               /* which hamivgpu_card; -1 */
	uint64_t memory_used;   /* driver, or region where pid is 0; HAMIVGPU_UNKNOWN */
	int claim;              /* which hamivgpu_claim; -1: none, a process outside of all vGPUs */
	uint32_t container_pid; /* region; 0 where claim is -1 */
};
HAMIVGPU_API size_t hamivgpu_process_count(const struct hamivgpu *h);
HAMIVGPU_API const struct hamivgpu_process *hamivgpu_process(const struct hamivgpu *h, size_t i);

/* What could not be read: cards that err, claims that are broken. One line each, fit to be shown. */
HAMIVGPU_API size_t hamivgpu_problem_count(const struct hamivgpu *h);
HAMIVGPU_API const char *hamivgpu_problem(const struct hamivgpu *h, size_t i);

#endif
