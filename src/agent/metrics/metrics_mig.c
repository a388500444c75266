/* MIG on /metrics: who has which device, and what the manager does. */
#include <string.h>

#include "agent/metrics/metrics_page.h"
#include "core/fmt.h"

static const char *profile_of(const struct metrics_sources *s, const struct claim_card *c)
{
	const struct fleet *fleet = cards_fleet(s->cards);
	const struct card *card = fleet != NULL ? inventory_find(fleet_inventory(fleet), c->uuid) : NULL;
	const struct mig_device *d = card != NULL ? mig_find_device(&card->mig, c->mig) : NULL;

	return d != NULL ? d->profile : "";
}

static void add_device(const struct metrics_sources *s, const struct claim *c, size_t i, const struct prom_family *f,
		       struct str *out)
{
	char at[12], gi[12], ci[12];

	hm_fmt(at, sizeof at, "%zu", i);
	hm_fmt(gi, sizeof gi, "%u", c->cards[i].gi);
	hm_fmt(ci, sizeof ci, "%u", c->cards[i].ci);
	prom_add(out, f,
		 PROM_LABELS({ "namespace", c->pod_namespace }, { "pod", c->pod_name }, { "container", c->container },
			     { "vdevice_index", at }, { "device_uuid", c->cards[i].uuid },
			     { "mig_uuid", c->cards[i].mig }, { "profile", profile_of(s, &c->cards[i]) },
			     { "gpu_instance_id", gi }, { "compute_instance_id", ci }, { "zone", "vGPU" }),
		 1);
}

static void add_manager(const struct mig_manager *m, struct str *out)
{
	struct mig_manager_stats stats;
	const struct prom_family *f;

	mig_manager_stats(m, &stats);
	f = metrics_begin(out, METRIC_MIG_HOLDS);
	prom_add(out, f, PROM_LABELS({ "state", "wanted" }), stats.holds - stats.ready_held - stats.over);
	prom_add(out, f, PROM_LABELS({ "state", "ready" }), stats.ready_held);
	prom_add(out, f, PROM_LABELS({ "state", "over" }), stats.over);
	f = metrics_begin(out, METRIC_MIG_CHANGES);
	prom_add(out, f, PROM_LABELS({ "result", "made" }), stats.made);
	prom_add(out, f, PROM_LABELS({ "result", "ended" }), stats.ended);
	prom_add(out, f, PROM_LABELS({ "result", "failed" }), stats.failures);
}

void metrics_add_mig(const struct metrics_sources *s, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_MIG_INFO);

	for (size_t i = 0; i < claims_count(s->claims); i++) {
		const struct claim *c = claims_at(s->claims, i);

		for (size_t k = 0; c->state == CLAIM_ACTIVE && claim_is_mig(c) && k < c->card_count; k++)
			add_device(s, c, k, f, out);
	}
	if (s->mig != NULL)
		add_manager(s->mig, out);
}
