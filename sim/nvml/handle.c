#include "sim/nvml/handle.h"

#include <pthread.h>
#include <string.h>

#include "sim/lib/sim_visible.h"

struct nvml_device {
	char reserved;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned init_count;
static struct nvml_device devices[SIM_MAX_CARDS]; /* a handle is a place in here */
static struct nvml_device migs[SIM_MAX_CARDS * SIM_MIG_INSTANCES];
static unsigned visible[SIM_MAX_CARDS], visible_number;

static int initialise(const char *call)
{
	enum sim_result r = sim_attach();
	int code;

	if (r == SIM_RELOADED && atomic_load(&init_count) == 0) {
		sim_detach();
		r = sim_attach();
	}
	if (r != SIM_OK)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	code = sim_nvml_code(0, call);
	if (code != 0)
		return code;
	if (atomic_load(&init_count) == 0)
		visible_number = sim_visible_cards(sim_node(), visible);
	atomic_fetch_add(&init_count, 1);
	return NVML_SUCCESS;
}

static int initialise_locked(const char *call)
{
	int r;

	pthread_mutex_lock(&mutex);
	r = initialise(call);
	pthread_mutex_unlock(&mutex);
	return r;
}

int nvmlInit(void)
{
	return initialise_locked(__func__);
}

int nvmlInit_v2(void)
{
	return initialise_locked(__func__);
}

int nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return initialise_locked(__func__);
}

int nvmlShutdown(void)
{
	int r = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&mutex);
	if (atomic_load(&init_count) > 0) {
		atomic_fetch_sub(&init_count, 1);
		r = NVML_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return r;
}

int node_enter(const char *call, const struct sim_node **node)
{
	if (atomic_load(&init_count) == 0)
		return NVML_ERROR_UNINITIALIZED;
	/* After a fork the child attaches anew here. */
	if (sim_attach() != SIM_OK)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	*node = sim_node();
	return sim_nvml_code(0, call);
}

int nvml_unmodelled(void);

/* What every exported name that is not modelled answers (gen_exports.py). */
int nvml_unmodelled(void)
{
	return atomic_load(&init_count) == 0 ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_NOT_SUPPORTED;
}

unsigned visible_count(void)
{
	return visible_number;
}

unsigned visible_card(unsigned index)
{
	return visible[index];
}

int visible_index(unsigned number)
{
	for (unsigned i = 0; i < visible_number; i++)
		if (visible[i] == number)
			return (int)i;
	return -1;
}

struct nvml_device *handle_of(unsigned number)
{
	return &devices[number];
}

bool handle_number(const struct nvml_device *device, unsigned *number)
{
	if (device < devices || device >= devices + SIM_MAX_CARDS)
		return false;
	*number = (unsigned)(device - devices);
	return visible_index(*number) >= 0;
}

int card_enter(const char *call, const struct nvml_device *device, const struct sim_card **card, unsigned *number)
{
	const struct sim_node *n = NULL;
	int code;

	if (atomic_load(&init_count) == 0)
		return NVML_ERROR_UNINITIALIZED;
	if (sim_attach() != SIM_OK)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	n = sim_node();
	if (!handle_number(device, number) || *number >= n->card_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	code = sim_nvml_fault(*number, call);
	if (code != 0)
		return code;
	*card = &n->cards[*number];
	return atomic_load(&(*card)->lost) != 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

struct nvml_device *mig_handle_of(unsigned number, unsigned place)
{
	return &migs[number * SIM_MIG_INSTANCES + place];
}

bool is_mig_handle(const struct nvml_device *device)
{
	return device >= migs && device < migs + SIM_MAX_CARDS * SIM_MIG_INSTANCES;
}

int mig_enter(const char *call, const struct nvml_device *device, const struct sim_card **card, unsigned *number,
	      const struct sim_mig_ci **mig)
{
	unsigned at = (unsigned)(device - migs), place = at % SIM_MIG_INSTANCES;
	int r = card_enter(call, handle_of(at / SIM_MIG_INSTANCES), card, number);

	if (r != NVML_SUCCESS)
		return r;
	*mig = &(*card)->mig_cis[place];
	return atomic_load(&(*mig)->live) != 0 && sim_visible_shows_mig(sim_node(), *number, place)
		       ? NVML_SUCCESS
		       : NVML_ERROR_INVALID_ARGUMENT;
}

int copy_text(const char *text, char *out, unsigned length)
{
	size_t n = strlen(text) + 1;

	if (n > length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, n);
	return NVML_SUCCESS;
}
