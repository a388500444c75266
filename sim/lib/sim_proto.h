/* What goes over $HAMI_SIM_DIR/socket (SOCK_SEQPACKET): one fixed struct each way. */
#ifndef HM_SIM_PROTO_H
#define HM_SIM_PROTO_H

#include <stdint.h>

#include "sim/lib/sim_state.h"

enum sim_op {
	SIM_OP_HELLO = 1, /* reply carries the state's descriptor */
	SIM_OP_JOIN,      /* a process number; a: 1 for a holder. Reply a: the number */
	SIM_OP_WAIT,      /* virtual clock: wake me when `a` is done on `card`. No reply */
	SIM_OP_SLEEP,     /* virtual clock: wake me at time `a`, and let it stand until `b` waits are there. No reply */
	SIM_OP_SYNC,      /* run all engines up to now */
	/* Control: for the daemon's own user and root. */
	SIM_OP_XID,        /* card, a: number, b: GPU instance << 32 | compute instance, all ones: none */
	SIM_OP_LOST,       /* card */
	SIM_OP_RECOVER,    /* card */
	SIM_OP_NVML_ERROR, /* card, text: call, a: code, 0 clears */
	SIM_OP_NVML_HANG,  /* card, a: nanoseconds from now, 0 ends it */
	SIM_OP_RELEASE,    /* card: end its holders. Reply a: how many */
	SIM_OP_RELOAD,     /* a: nanoseconds without a driver */
	SIM_OP_STOP,
	SIM_OP_ECC,    /* card, a: uncorrectable errors that come, and an event */
	SIM_OP_ROWS,   /* card, a: a row waits to be remapped, b: one could not be */
	SIM_OP_ACTION, /* card, a: what the driver asks for, NVML_GPU_RECOVERY_ACTION_* */
	SIM_OP_EVENTS, /* card, a: 0: it tells none from now on */
	/* MIG. Reply a: an NVML code; b: see each. Of the driver's own root: control as well. */
	SIM_OP_MIG_MODE,      /* card, a: 1 enable. Reply b: the activation's NVML code */
	SIM_OP_MIG_CREATE_GI, /* card, a: the driver's profile number, b: first memory slice or SIM_MIG_ANY. b: place */
	SIM_OP_MIG_CREATE_CI, /* card, a: the GPU instance's place, b: compute slices. b: place */
	SIM_OP_MIG_DESTROY_GI, /* card, a: place */
	SIM_OP_MIG_DESTROY_CI
};
#define SIM_MIG_ANY UINT64_MAX

struct sim_request {
	uint32_t op, card;
	uint64_t a, b;
	char text[SIM_CALL_BYTES];
};

struct sim_reply {
	int32_t result; /* enum sim_result; SIM_FAILED has a text */
	uint32_t op;
	uint64_t a, b;
	char text[120];
};

#endif
