#include "sim/lib/sim_mig.h"

#include <string.h>

#include "abi/nvml_mig.h"
#include "core/fmt.h"

#define LOAD(p) atomic_load_explicit(&(p), memory_order_acquire)
#define STORE(p, v) atomic_store_explicit(&(p), (v), memory_order_release)

const struct sim_mig_profile *sim_mig_profile(const struct sim_card *c, uint32_t profile_id)
{
	for (unsigned i = 0; i < c->info.mig_profile_count; i++)
		if (c->info.mig_profiles[i].profile_id == profile_id)
			return &c->info.mig_profiles[i];
	return NULL;
}

static const struct sim_mig_profile *profile_of(const struct sim_card *c, unsigned gi)
{
	return &c->info.mig_profiles[c->mig_gis[gi].profile];
}

static bool allowed(const struct sim_mig_profile *p, uint32_t start)
{
	for (unsigned i = 0; i < p->start_count; i++)
		if (p->starts[i] == start)
			return true;
	return false;
}

static unsigned count_of(const struct sim_card *c, const struct sim_mig_profile *p)
{
	unsigned count = 0;

	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		count += LOAD(c->mig_gis[i].live) != 0 && profile_of(c, i) == p;
	return count;
}

bool sim_mig_fits(const struct sim_card *c, const struct sim_mig_profile *p, uint32_t start)
{
	if (!allowed(p, start) || count_of(c, p) >= p->count)
		return false;
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++) {
		const struct sim_mig_gi *gi = &c->mig_gis[i];

		if (LOAD(gi->live) != 0 && start < gi->start + profile_of(c, i)->size && gi->start < start + p->size)
			return false;
	}
	return true;
}

unsigned sim_mig_capacity(const struct sim_card *c, const struct sim_mig_profile *p)
{
	unsigned made = count_of(c, p), room = p->count > made ? p->count - made : 0, fit = 0;

	for (unsigned i = 0, next = 0; i < p->start_count; i++) {
		if (p->starts[i] < next || !sim_mig_fits(c, p, p->starts[i]))
			continue;
		next = p->starts[i] + p->size;
		fit++;
	}
	return fit < room ? fit : room;
}

unsigned sim_mig_free_slices(const struct sim_card *c, unsigned gi)
{
	unsigned slices = profile_of(c, gi)->slices;

	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (LOAD(c->mig_cis[i].live) != 0 && c->mig_cis[i].gi == gi)
			slices -= c->mig_cis[i].slices < slices ? c->mig_cis[i].slices : slices;
	return slices;
}

int sim_mig_find(const struct sim_card *c, uint32_t live)
{
	for (unsigned i = 0; live != 0 && i < SIM_MIG_INSTANCES; i++)
		if (LOAD(c->mig_cis[i].live) == live)
			return (int)i;
	return -1;
}

void sim_mig_name(const struct sim_card *c, const struct sim_mig_ci *ci, char *out, size_t cap)
{
	const struct sim_mig_profile *p = profile_of(c, ci->gi);

	if (ci->slices == p->slices)
		hm_fmt(out, cap, "%s", p->name);
	else
		hm_fmt(out, cap, "%uc.%s", ci->slices, p->name);
}

uint64_t sim_mig_used(const struct sim_card *c, unsigned gi)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		const struct sim_share *s = &c->shares[i];
		int ci = sim_mig_find(c, LOAD(s->mig));

		if (ci >= 0 && c->mig_cis[ci].gi == gi)
			used += LOAD(s->data_bytes) + LOAD(s->context_bytes);
	}
	return used;
}

uint64_t sim_mig_bytes(const struct sim_card *c, unsigned gi)
{
	return profile_of(c, gi)->memory_mib << 20;
}

/* ---- Changes */

static bool any_gi(const struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (LOAD(c->mig_gis[i].live) != 0)
			return true;
	return false;
}

int sim_mig_set_mode(struct sim_card *c, bool enable, int *activation)
{
	if (c->info.mig_capable == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	STORE(c->mig_pending, enable);
	*activation = NVML_SUCCESS;
	if (LOAD(c->mig_mode) == (uint32_t)enable)
		return NVML_SUCCESS;
	if (any_gi(c) || LOAD(c->used_bytes) > c->info.reserved_bytes)
		*activation = NVML_ERROR_IN_USE;
	else
		STORE(c->mig_mode, enable);
	return NVML_SUCCESS;
}

static uint32_t free_gi_id(const struct sim_card *c)
{
	for (uint32_t id = 1;; id++) {
		bool taken = false;

		for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
			taken |= LOAD(c->mig_gis[i].live) != 0 && c->mig_gis[i].id == id;
		if (!taken)
			return id;
	}
}

static int free_gi(const struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (LOAD(c->mig_gis[i].live) == 0)
			return (int)i;
	return -1;
}

int sim_mig_create_gi(struct sim_card *c, uint32_t profile_id, uint32_t start, unsigned *place)
{
	const struct sim_mig_profile *p = sim_mig_profile(c, profile_id);
	int at = free_gi(c);

	if (LOAD(c->mig_mode) == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (p == NULL || (start != UINT32_MAX && !allowed(p, start)))
		return NVML_ERROR_INVALID_ARGUMENT;
	/* The driver, too, fills a card from its end. */
	for (unsigned i = p->start_count; start == UINT32_MAX && i > 0; i--)
		if (sim_mig_fits(c, p, p->starts[i - 1]))
			start = p->starts[i - 1];
	if (at < 0 || !sim_mig_fits(c, p, start))
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	c->mig_gis[at].id = free_gi_id(c);
	c->mig_gis[at].profile = (uint32_t)(p - c->info.mig_profiles);
	c->mig_gis[at].start = start;
	STORE(c->mig_gis[at].live, 1);
	*place = (unsigned)at;
	return NVML_SUCCESS;
}

static bool ci_of(const struct sim_card *c, unsigned gi)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (LOAD(c->mig_cis[i].live) != 0 && c->mig_cis[i].gi == gi)
			return true;
	return false;
}

int sim_mig_destroy_gi(struct sim_card *c, unsigned place)
{
	if (place >= SIM_MIG_INSTANCES || LOAD(c->mig_gis[place].live) == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (ci_of(c, place))
		return NVML_ERROR_IN_USE;
	STORE(c->mig_gis[place].live, 0);
	return NVML_SUCCESS;
}

static uint32_t free_ci_id(const struct sim_card *c, unsigned gi)
{
	for (uint32_t id = 0;; id++) {
		bool taken = false;

		for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
			taken |= LOAD(c->mig_cis[i].live) != 0 && c->mig_cis[i].gi == gi && c->mig_cis[i].id == id;
		if (!taken)
			return id;
	}
}

int sim_mig_create_ci(struct sim_card *c, unsigned gi, uint32_t slices, unsigned *place)
{
	struct sim_mig_ci *ci = NULL;

	if (gi >= SIM_MIG_INSTANCES || LOAD(c->mig_gis[gi].live) == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (slices == 0 || slices > profile_of(c, gi)->slices)
		return NVML_ERROR_NOT_SUPPORTED;
	for (unsigned i = 0; i < SIM_MIG_INSTANCES && ci == NULL; i++)
		if (LOAD(c->mig_cis[i].live) == 0)
			ci = &c->mig_cis[i];
	if (ci == NULL || slices > sim_mig_free_slices(c, gi))
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	ci->id = free_ci_id(c, gi);
	ci->gi = gi;
	ci->slices = slices;
	ci->start = profile_of(c, gi)->slices - sim_mig_free_slices(c, gi);
	/* The same instance made again has the same UUID, as with the driver. The card's own first digits are in it, so
	 * that it is the node's only one. */
	hm_fmt(ci->uuid, sizeof ci->uuid, "MIG-%.8s-%04x-5%03x-8%03x-%012x", c->info.uuid + 4, c->mig_gis[gi].id,
	       ci->id, c->info.minor,
	       c->info.mig_profiles[c->mig_gis[gi].profile].profile_id << 8 | c->mig_gis[gi].start);
	STORE(ci->live, ++c->mig_made);
	*place = (unsigned)(ci - c->mig_cis);
	return NVML_SUCCESS;
}

int sim_mig_destroy_ci(struct sim_card *c, unsigned place)
{
	uint32_t live;

	if (place >= SIM_MIG_INSTANCES || (live = LOAD(c->mig_cis[place].live)) == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		const struct sim_share *s = &c->shares[i];

		if (LOAD(s->mig) == live && LOAD(s->data_bytes) + LOAD(s->context_bytes) > 0)
			return NVML_ERROR_IN_USE;
	}
	STORE(c->mig_cis[place].live, 0);
	return NVML_SUCCESS;
}

void sim_mig_reset(struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++) {
		STORE(c->mig_cis[i].live, 0);
		STORE(c->mig_gis[i].live, 0);
	}
	STORE(c->mig_mode, LOAD(c->mig_pending));
}
