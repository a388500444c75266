#include "sim/cuda/state.h"

#include <pthread.h>

#include "core/fmt.h"
#include "core/macros.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/visible.h"
#include "sim/lib/sim_mig.h"

struct cu_state cu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t running = PTHREAD_COND_INITIALIZER;

void cu_lock(void)
{
	pthread_mutex_lock(&lock);
}

void cu_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void cu_state_changed(void)
{
	pthread_cond_broadcast(&running);
}

/* As the real driver: a process that had called cuInit has children that cannot use CUDA, whatever they hold. One that
 * had not may fork freely. The lock is taken around fork so that the child's copy is never one that another thread
 * holds. */
static void after_fork_in_child(void)
{
	cu.forked = cu.ready;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(cu_lock, cu_unlock, after_fork_in_child);
}

__attribute__((destructor)) static void on_unload(void)
{
	cu.ended = true;
}

CUresult cu_code(enum sim_result result)
{
	static const CUresult codes[] = {
		[SIM_OK] = CUDA_SUCCESS,
		[SIM_NO_NODE] = CUDA_ERROR_NO_DEVICE,
		[SIM_NO_CARD] = CUDA_ERROR_INVALID_DEVICE,
		[SIM_NO_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
		/* A card that fell off the bus shows as 999 in the driver, whatever is asked. */
		[SIM_LOST] = CUDA_ERROR_UNKNOWN,
		[SIM_NOT_FOUND] = CUDA_ERROR_INVALID_VALUE,
		[SIM_RELOADED] = CUDA_ERROR_UNKNOWN,
		[SIM_FAILED] = CUDA_ERROR_UNKNOWN,
	};
	return (size_t)result < HM_COUNT(codes) ? codes[result] : CUDA_ERROR_UNKNOWN;
}

CUresult cu_enter(void)
{
	cu_lock();
	while (HM_UNLIKELY(cu.process_state != CU_PROCESS_STATE_RUNNING && !cu.forked && !cu.ended))
		pthread_cond_wait(&running, &lock);
	if (HM_LIKELY(cu.ready && !cu.forked && !cu.ended))
		return CUDA_SUCCESS;
	CUresult rc = cu.ended ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
	cu_unlock();
	return rc;
}

CUresult cu_leave(CUresult rc)
{
	cu_unlock();
	return rc;
}

CUresult cu_enter_device(CUdevice dev, struct cu_device **out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (dev < 0 || (unsigned)dev >= cu.count)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	*out = &cu.devices[dev];
	return CUDA_SUCCESS;
}

CUresult cu_enter_context(struct CUctx_st **out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_context_get(NULL, out);
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

static struct sim_card_info mig_info; /* of the one MIG device that a process can have */

/* The card as its MIG device shows it. */
static CUresult enter_mig(unsigned card, uint32_t live)
{
	const struct sim_card *c = &sim_node()->cards[card];
	int place = sim_mig_find(c, live);
	const struct sim_mig_profile *p;
	char profile[48];

	if (place < 0 || sim_mig_enter(card, live) != SIM_OK)
		return CUDA_ERROR_NO_DEVICE;
	p = &c->info.mig_profiles[c->mig_gis[c->mig_cis[place].gi].profile];
	mig_info = c->info;
	sim_mig_name(c, &c->mig_cis[place], profile, sizeof profile);
	hm_fmt(mig_info.name, sizeof mig_info.name, "%s MIG %s", c->info.name, profile);
	hm_fmt(mig_info.uuid, sizeof mig_info.uuid, "%s", c->mig_cis[place].uuid);
	mig_info.memory_bytes = p->memory_mib << 20;
	mig_info.reserved_bytes = 0;
	mig_info.sms = p->sms * c->mig_cis[place].slices / p->slices;
	cu.devices[0].card = card;
	cu.devices[0].mig = live;
	cu.count = 1;
	return CUDA_SUCCESS;
}

const struct sim_card_info *cu_info(unsigned device)
{
	if (HM_UNLIKELY(cu.devices[device].mig != 0))
		return &mig_info;
	return &sim_node()->cards[cu.devices[device].card].info;
}

/* A process that has been waited for may not have been noticed as dead by the daemon, whereas the kernel's driver frees
 * what it had before its parent hears of its end. Once the daemon has answered twice it has seen every death before the
 * first question: it may have taken them in any order with that one, not with the second. */
static void see_deaths(void)
{
	for (int i = 0; i < 2; i++)
		(void)sim_sync(); /* without a daemon nothing will be noticed */
}

CUresult cu_charge(unsigned device, enum sim_mem_kind kind, uint64_t bytes)
{
	enum sim_result r = sim_mem_charge(cu.devices[device].card, kind, bytes);

	if (HM_UNLIKELY(r == SIM_NO_MEMORY)) {
		see_deaths();
		r = sim_mem_charge(cu.devices[device].card, kind, bytes);
	}
	if (r == SIM_OK)
		cu.devices[device].held[kind] += bytes;
	return cu_code(r);
}

void cu_discharge(unsigned device, enum sim_mem_kind kind, uint64_t bytes)
{
	cu.devices[device].held[kind] -= bytes;
	if (bytes > 0)
		(void)sim_mem_release(cu.devices[device].card, kind,
				      bytes); /* what was on a lost card is gone already */
}

CUresult cu_wait(struct CUctx_st *ctx, uint64_t ticket)
{
	if (ticket == 0)
		return CUDA_SUCCESS;
	unsigned card = cu.devices[ctx->device].card;
	uint64_t id = ctx->id;

	cu_unlock();
	CUresult rc = cu_code(sim_work_wait(card, ticket));
	cu_lock();
	if (rc != CUDA_SUCCESS && cu_handle_is(ctx, CU_CONTEXT) && ctx->id == id)
		ctx->sticky = rc;
	return rc;
}

static CUresult init_locked(void)
{
	if (cu.ended)
		return CUDA_ERROR_DEINITIALIZED;
	if (cu.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (cu.ready)
		return CUDA_SUCCESS;
	CUresult rc = cu_code(sim_attach());

	if (rc != CUDA_SUCCESS)
		return rc;
	see_deaths();
	unsigned cards[SIM_MAX_CARDS], card;
	uint32_t live;

	cu.count = cu_visible_devices(cards);
	if (cu_visible_mig(cards, &cu.count, &card, &live))
		rc = enter_mig(card, live);
	else if (cu.count == 0)
		rc = CUDA_ERROR_NO_DEVICE;
	for (unsigned i = 0; rc == CUDA_SUCCESS && cu.devices[0].mig == 0 && i < cu.count; i++)
		cu.devices[i].card = cards[i];
	cu.ready = rc == CUDA_SUCCESS;
	return rc;
}

CU_EXPORT CUresult cuInit(unsigned flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	cu_lock();
	return cu_leave(init_locked());
}

CU_EXPORT CUresult cuDriverGetVersion(int *version)
{
	if (version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*version = cu_driver_version();
	return CUDA_SUCCESS;
}

/* Without a node the library still knows its own version, as a real libcuda without a kernel module. */
int cu_driver_version(void)
{
	if (cu.ended || cu.forked || sim_attach() != SIM_OK || sim_node()->cuda_version == 0)
		return CU_DRIVER_VERSION;
	return HM_MIN((int)sim_node()->cuda_version, (int)CU_DRIVER_VERSION);
}

struct named_code {
	CUresult code;
	const char *name, *text;
};
static const struct named_code named_codes[] = {
#define X(name, code, text) { (code), #name, (text) },
#include "abi/cuda_errors.def"
#undef X
};

static CUresult name_code(CUresult code, const char **out, bool text)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	for (size_t i = 0; i < HM_COUNT(named_codes); i++)
		if (named_codes[i].code == code) {
			*out = text ? named_codes[i].text : named_codes[i].name;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CU_EXPORT CUresult cuGetErrorName(CUresult code, const char **out)
{
	return name_code(code, out, false);
}

CU_EXPORT CUresult cuGetErrorString(CUresult code, const char **out)
{
	return name_code(code, out, true);
}
