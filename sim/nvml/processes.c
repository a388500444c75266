/* Process lists of all generations, and accounting, from one walk over the card's shares. */
#include <string.h>

#include "core/macros.h"
#include "sim/lib/sim_mig.h"
#include "sim/nvml/handle.h"

struct user {
	unsigned pid;
	unsigned long long used;
	unsigned gi, ci; /* NVML_NO_INSTANCE: it has the whole card */
};
typedef void put_fn(void *out, unsigned at, const struct user *u);

static struct user user_of(const struct sim_node *n, unsigned number, unsigned process)
{
	const struct sim_card *c = &n->cards[number];
	const struct sim_share *s = &c->shares[process];
	struct user u = { .pid = atomic_load(&n->processes[process].pid),
			  .used = atomic_load(&s->data_bytes) + atomic_load(&s->context_bytes),
			  .gi = NVML_NO_INSTANCE,
			  .ci = NVML_NO_INSTANCE };
	int place = sim_mig_find(c, atomic_load(&s->mig));

	if (place >= 0) {
		u.gi = c->mig_gis[c->mig_cis[place].gi].id;
		u.ci = c->mig_cis[place].id;
	}
	return u;
}

/* Calls put for each process that has memory on the card, or on the MIG device where that is given; returns how many
 * there are. */
static unsigned walk(unsigned number, const struct sim_mig_ci *m, unsigned room, void *out, put_fn *put)
{
	const struct sim_node *n = sim_node();
	unsigned found = 0;

	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		struct user u = user_of(n, number, i);

		if (u.pid == 0 || u.used == 0 ||
		    (m != NULL && atomic_load(&n->cards[number].shares[i].mig) != atomic_load(&m->live)))
			continue;
		if (found < room)
			put(out, found, &u);
		found++;
	}
	return found;
}

static void put_v1(void *out, unsigned at, const struct user *u)
{
	((struct nvml_process_info_v1 *)out)[at] = (struct nvml_process_info_v1) { u->pid, u->used };
}

static void put_v2(void *out, unsigned at, const struct user *u)
{
	((struct nvml_process_info *)out)[at] = (struct nvml_process_info) { u->pid, u->used, u->gi, u->ci };
}

static void put_detail(void *out, unsigned at, const struct user *u)
{
	((struct nvml_process_detail *)out)[at] = (struct nvml_process_detail) { u->pid, u->used, u->gi, u->ci, 0 };
}

static void put_encoder(void *out, unsigned at, const struct user *u)
{
	((struct nvml_encoder_session *)out)[at] = (struct nvml_encoder_session) { .session = at + 1, .pid = u->pid };
}

static void put_fbc(void *out, unsigned at, const struct user *u)
{
	((struct nvml_fbc_session *)out)[at] = (struct nvml_fbc_session) { .session = at + 1, .pid = u->pid };
}

/* Fills what fits; with too little room says how much is needed. */
static int list(const char *call, struct nvml_device *device, unsigned *count, void *out, put_fn *put)
{
	const struct sim_card *c = NULL;
	const struct sim_mig_ci *m = NULL;
	unsigned number, room, found;
	int r = is_mig_handle(device) ? mig_enter(call, device, &c, &number, &m)
				      : card_enter(call, device, &c, &number);

	if (r != NVML_SUCCESS)
		return r;
	if (count == NULL || (*count > 0 && out == NULL))
		return NVML_ERROR_INVALID_ARGUMENT;
	room = *count;
	found = put != NULL ? walk(number, m, room, out, put) : 0;
	*count = found;
	return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST(function, type, put)                                                                                      \
	int function(struct nvml_device *device, unsigned *count, struct type *out)                                    \
	{                                                                                                              \
		return list(__func__, device, count, out, put);                                                        \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_info_v1, put_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process_info, put_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process_info, put_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_info_v1, NULL)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process_info, NULL)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process_info, NULL)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_info_v1, NULL)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process_info, NULL)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process_info, NULL)
LIST(nvmlDeviceGetEncoderSessions, nvml_encoder_session, put_encoder)
LIST(nvmlDeviceGetFBCSessions, nvml_fbc_session, put_fbc)

int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_detail_list *processes)
{
	if (processes == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (processes->version != NVML_PROCESS_DETAIL_LIST_V1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (processes->mode > NVML_PROCESS_MODE_ALL)
		return NVML_ERROR_INVALID_ARGUMENT;
	return list(__func__, device, &processes->count, processes->processes,
		    processes->mode == NVML_PROCESS_MODE_COMPUTE || processes->mode == NVML_PROCESS_MODE_ALL
			    ? put_detail
			    : NULL);
}

/* ---- Accounting: of those that have memory on the card now; who has ended is not remembered */

static void put_pid(void *out, unsigned at, const struct user *u)
{
	((unsigned *)out)[at] = u->pid;
}

int nvmlDeviceGetAccountingPids(struct nvml_device *device, unsigned *count, unsigned *pids)
{
	return list(__func__, device, count, pids, put_pid);
}

struct wanted {
	unsigned pid;
	unsigned long long bytes; /* 0: not met yet, as walk shows none without memory */
};

static void put_wanted(void *out, unsigned at HM_UNUSED, const struct user *u)
{
	struct wanted *w = out;

	if (u->pid == w->pid && w->bytes == 0)
		w->bytes = u->used;
}

/* What the process has now; 0: it is not on the card. */
static unsigned long long memory_of(unsigned number, unsigned pid)
{
	struct wanted w = { .pid = pid };

	walk(number, NULL, SIM_MAX_PROCESSES, &w, put_wanted);
	return w.bytes;
}

int nvmlDeviceGetAccountingStats(struct nvml_device *device, unsigned pid, struct nvml_accounting_stats *stats)
{
	unsigned long long bytes;
	CARD(device, stats);

	bytes = memory_of(number, pid);
	if (bytes == 0)
		return NVML_ERROR_NOT_FOUND;
	*stats = (struct nvml_accounting_stats) { .max_memory_bytes = bytes, .is_running = 1 };
	return NVML_SUCCESS;
}

int nvmlDeviceGetAccountingStats_v2(struct nvml_device *device, struct nvml_accounting_stats_v2 *stats)
{
	unsigned long long bytes;
	CARD(device, stats);

	bytes = memory_of(number, stats->pid);
	if (bytes == 0)
		return NVML_ERROR_NOT_FOUND;
	*stats = (struct nvml_accounting_stats_v2) { .pid = stats->pid, .is_running = 1, .max_memory_bytes = bytes };
	return NVML_SUCCESS;
}
