/* The simulated node's shared memory ($HAMI_SIM_DIR/state): the machine as its YAML describes it, and what its
 * processes do to it. hami-simd creates it and hands its descriptor to each client; clients map it read-write.
 *
 * Rules that keep it whole when a client dies at any instruction:
 *  - what is under a card's `lock` may be left half changed only in ways that hami-simd mends when it breaks the dead
 *    owner's lock: `used` is recomputed from the shares, everything else is legal at any value it can be left with;
 *  - a process number is given and taken back by hami-simd alone, which learns of a death by pidfd or EOF;
 *  - fields that are read without the lock are single atomics.
 * Times are nanoseconds of the node's clock (sim_now_ns), sizes bytes. */
#ifndef HM_SIM_STATE_H
#define HM_SIM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_ENV_DIR "HAMI_SIM_DIR"
#define SIM_SOCKET "socket"
#define SIM_STATE_FILE "state"

enum {
	SIM_MAGIC = 0x484d5349, /* "HMSI" */
	SIM_VERSION = 3,
	SIM_MAX_CARDS = 16,
	SIM_MAX_PROCESSES = 256,
	SIM_MAX_LINKS = 18, /* NVML_NVLINK_MAX_LINKS */
	SIM_MAX_MIG_PROFILES = 12,
	SIM_MIG_INSTANCES = 7, /* of one card at once: GPU instances, and compute instances as many */
	SIM_MIG_SLICES = 8,    /* memory slices of a card, where placements are counted in */
	SIM_MAX_FAULTS = 16,   /* of one card */
	SIM_RUN_LOG = 1024,    /* stretches of work remembered per process and card; power of 2 */
	SIM_GATES = 64,        /* of one process on one card */
	SIM_MEETINGS = 1024,   /* under way on the node; power of 2 */
	SIM_SAMPLES = 32,      /* utilisation samples remembered per card; power of 2 */
	SIM_EVENTS = 256,      /* XID events remembered; power of 2 */
	SIM_NAME_BYTES = 96,   /* model name, NVML_DEVICE_NAME_V2_BUFFER_SIZE */
	SIM_UUID_BYTES = 48,   /* "GPU-" and 36 characters */
	SIM_CALL_BYTES = 64,   /* an NVML function's name */
	SIM_CPU_WORDS = 4,     /* CPU affinity mask, 64 CPUs a word */
};

#define SIM_QUANTUM_NS 2000000ULL  /* time slice between processes on one card */
#define SIM_SAMPLE_NS 166666667ULL /* NVML samples utilisation every 1/6 s */

enum sim_clock { SIM_CLOCK_WALL, SIM_CLOCK_VIRTUAL };

/* How two cards reach each other over PCI, in the order of NVML's nvmlGpuTopologyLevel_t. */
enum sim_pci_level {
	SIM_PCI_SAME,   /* one board */
	SIM_PCI_SINGLE, /* PIX: one switch */
	SIM_PCI_MULTIPLE,
	SIM_PCI_HOSTBRIDGE,
	SIM_PCI_NODE,
	SIM_PCI_SYSTEM
};

enum sim_link_remote { SIM_LINK_NONE, SIM_LINK_GPU, SIM_LINK_SWITCH };

struct sim_link {
	uint32_t remote; /* enum sim_link_remote */
	uint32_t card;   /* SIM_LINK_GPU: the other card; SIM_LINK_SWITCH: the switch's number */
};

struct sim_mig_profile {
	char name[32];          /* "1g.10gb" */
	uint32_t id;            /* NVML_GPU_INSTANCE_PROFILE_* */
	uint32_t profile_id;    /* the driver's own number, as nvidia-smi mig -lgip shows */
	uint32_t slices, count; /* compute slices of one instance; instances that fit on the card */
	uint32_t sms, copy_engines, decoders;
	uint32_t size, start_count; /* memory slices of one instance; where it may start */
	uint8_t starts[SIM_MIG_SLICES];
	uint64_t memory_mib;
};

/* An instance that the node's YAML asks for; it is made when the node comes up. */
struct sim_mig_static {
	uint32_t profile, start; /* place in mig_profiles; memory slice */
};

/* What never changes while the driver is loaded. */
struct sim_card_info {
	char name[SIM_NAME_BYTES];
	char uuid[SIM_UUID_BYTES];
	char serial[32], vbios[32];
	uint32_t minor;
	uint32_t pci_domain, pci_bus, pci_device;
	uint32_t pci_device_id, pci_subsystem_id; /* (device << 16 | vendor) as NVML gives them */
	int32_t numa_node;                        /* -1: none */
	uint64_t cpu_mask[SIM_CPU_WORDS];
	uint64_t memory_bytes, reserved_bytes; /* NVML's total; the driver's own part of it */
	uint64_t context_bytes;                /* what the first context of a process costs */
	uint64_t bar1_bytes, l2_bytes;
	uint32_t sms, threads_per_sm, blocks_per_sm, registers_per_sm;
	uint32_t shared_per_sm, shared_per_block, shared_per_block_optin;
	uint32_t cc_major, cc_minor;
	uint32_t brand, architecture; /* NVML_BRAND_*, NVML_DEVICE_ARCH_* */
	uint32_t bus_width_bits;
	uint32_t sm_clock_mhz, memory_clock_mhz; /* the maxima */
	uint32_t power_limit_mw, idle_power_mw;
	uint32_t pcie_generation, pcie_width;
	uint32_t ecc;         /* 1: has it and it is on */
	uint32_t mig_capable; /* MIG can be enabled */
	uint32_t mig_enabled; /* when the node comes up; mig_mode says how it is */
	uint32_t mig_profile_count;
	struct sim_mig_profile mig_profiles[SIM_MAX_MIG_PROFILES];
	uint32_t mig_static_count;
	struct sim_mig_static mig_static[SIM_MIG_INSTANCES];
	struct sim_link links[SIM_MAX_LINKS];
	uint8_t pci_level[SIM_MAX_CARDS]; /* enum sim_pci_level to each other card */
	uint8_t nvlinks[SIM_MAX_CARDS];   /* NVLinks to each other card, through switches too */
};

/* Two kernels that wait for each other, as those of a collective do: whichever starts first occupies its card until the
 * other has started. */
struct sim_meeting {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint32_t arrived, left;
};

struct sim_gate {
	uint64_t at; /* the kernel's begin, on the process's number line */
	uint32_t meeting;
	bool arrived;
};

/* A GPU instance. Its number (id) is given again once it is gone; its place in the table is nobody's business but the
 * handles'. Written under the card's lock, `live` last. */
struct sim_mig_gi {
	_Atomic uint32_t live;
	uint32_t id;
	uint32_t profile, start; /* place in mig_profiles; first memory slice */
};

/* A compute instance: a MIG device. */
struct sim_mig_ci {
	_Atomic uint32_t live;     /* a number that no other of the card ever had; 0: none */
	uint32_t gi, id;           /* place in the table of GPU instances; number within it */
	uint32_t slices, start;    /* compute slices of the GPU instance */
	char uuid[SIM_UUID_BYTES]; /* "MIG-..." */
};

/* One process on one card. */
struct sim_share {
	_Atomic uint32_t epoch;    /* the card's when the process first used it; another: what it had is gone */
	_Atomic uint32_t run_head; /* stretches ever logged; the last is run_head - 1 */
	_Atomic uint32_t mig;      /* its compute instance's `live`; 0: it has the whole card */
	_Atomic uint64_t data_bytes, context_bytes;
	/* Work is a number line: submitted counts all nanoseconds ever queued, done those that ran. A ticket is a
	 * point on it. */
	_Atomic uint64_t submitted_ns, done_ns;
	_Atomic uint64_t spun_ns;        /* the card occupied by kernels that waited for another */
	_Atomic uint64_t sample_done_ns; /* done_ns and spun_ns when the current utilisation sample began */
	uint32_t gate_first, gate_count; /* under the card's lock */
	struct sim_gate gates[SIM_GATES];
} __attribute__((aligned(64)));

/* A stretch of uninterrupted work: from `at_ns` on, done_ns went from `done_ns` upwards one for one. */
struct sim_run {
	_Atomic uint64_t done_ns, at_ns;
};

struct sim_sample_process {
	uint32_t pid, busy_ns;
};
struct sim_sample {
	_Atomic uint64_t end_ns; /* 0: none; written last */
	uint32_t busy_ns, span_ns;
	struct sim_sample_process processes[SIM_MAX_PROCESSES]; /* busy_ns 0: did nothing */
};

struct sim_fault {
	_Atomic int32_t code; /* 0: free; written last */
	char call[SIM_CALL_BYTES];
};

struct sim_card {
	struct sim_card_info info;

	_Atomic uint32_t lock __attribute__((aligned(64))); /* 0, process number + 1, or SIM_LOCK_DAEMON */
	_Atomic uint32_t lost;
	/* What the card has of errors, until it is reset (recover, a reload of the driver). */
	_Atomic uint64_t ecc_uncorrected;
	_Atomic uint32_t rows_pending, rows_failed; /* the failure stays */
	_Atomic uint32_t action;                    /* NVML_GPU_RECOVERY_ACTION_* */
	_Atomic uint32_t no_events;                 /* it tells no events */
	_Atomic uint32_t epoch;                     /* from 1; one more each time the card is lost */
	_Atomic uint64_t used_bytes;                /* reserved_bytes + all shares */
	_Atomic uint64_t peak_bytes;

	/* The engine, under lock. */
	_Atomic uint64_t engine_ns;                      /* it has been run up to here */
	_Atomic uint64_t busy_ns;                        /* all work ever done */
	_Atomic uint64_t active[SIM_MAX_PROCESSES / 64]; /* a bit for each process with queued work */
	uint32_t current;                                /* process whose slice it is */
	uint64_t slice_left_ns;
	uint64_t sample_begin_ns, sample_busy_ns;
	_Atomic uint32_t sample_head; /* samples ever taken */

	_Atomic uint32_t mig_mode, mig_pending; /* 1: enabled */
	uint32_t mig_made;                      /* compute instances ever made */
	struct sim_mig_gi mig_gis[SIM_MIG_INSTANCES];
	struct sim_mig_ci mig_cis[SIM_MIG_INSTANCES];

	_Atomic uint64_t hang_until_ns; /* CLOCK_MONOTONIC */
	struct sim_fault faults[SIM_MAX_FAULTS];
	struct sim_share shares[SIM_MAX_PROCESSES];
	struct sim_sample samples[SIM_SAMPLES];
};
enum { SIM_LOCK_DAEMON = 0xffff };

struct sim_process {
	_Atomic uint32_t pid;        /* the host's; 0: free number */
	_Atomic uint32_t generation; /* the node's when it joined */
	_Atomic uint32_t holder;     /* a stray process made by `hami-simctl gpu N hold` */
	_Atomic uint32_t wake;       /* futex: bumped when something it waits for may have happened */
	_Atomic uint32_t activity;   /* bumped by each submit: tells a busy process from an idle one */
	_Atomic uint32_t computes;   /* has submitted work or waited: the virtual clock waits for it */
	_Atomic uint64_t join;       /* unique per join: a process whose number was taken away notices */
} __attribute__((aligned(64)));

struct sim_event {
	_Atomic uint64_t sequence; /* from 1; written last */
	uint32_t card;
	uint32_t xid;                            /* 0: a double-bit ECC error */
	uint32_t gpu_instance, compute_instance; /* 0xffffffff: the card as a whole */
	uint64_t at_ns;
};

struct sim_node {
	uint32_t magic, version;
	uint64_t bytes; /* of the whole state */
	char name[64];
	char driver_version[32], nvml_version[32];
	uint32_t cuda_version; /* 1000 * major + 10 * minor */
	uint32_t clock;        /* enum sim_clock */
	uint32_t card_count, switch_count;
	uint32_t daemon_pid;
	int64_t wall_offset_ns;      /* node clock + this = nanoseconds since 1970, as NVML stamps samples */
	_Atomic uint32_t generation; /* from 1; one more at each driver reload */
	_Atomic uint32_t loaded;     /* 0: no driver (between unload and load, or the daemon is gone) */
	_Atomic uint64_t virtual_ns; /* the clock when clock is SIM_CLOCK_VIRTUAL */
	_Atomic uint32_t event_wake; /* futex, and the low bits of event_head */
	_Atomic uint64_t event_head; /* events ever posted */
	struct sim_event events[SIM_EVENTS];
	struct sim_process processes[SIM_MAX_PROCESSES];
	struct sim_meeting meetings[SIM_MEETINGS];
	struct sim_card cards[SIM_MAX_CARDS];
	struct sim_run runs[SIM_MAX_CARDS][SIM_MAX_PROCESSES][SIM_RUN_LOG]; /* sparse in the file */
};

#endif
