#include "agent/pages.h"

#include <stdlib.h>

#include "agent/cards/card_usage.h"
#include "agent/metrics/health.h"
#include "agent/metrics/metrics.h"
#include "base/log.h"

struct pages {
	struct pages_config config;
	struct health_sources health_sources;
	struct http_server *health; /* NULL, as metrics and usage: not wanted */
	struct card_usage *usage;
	struct metrics_sources metrics_sources;
	struct http_server *metrics;
};

static void show_resources(struct pages *p)
{
	struct metrics_sources *s = &p->metrics_sources;

	s->resource_count = offers_list(p->config.offers, s->resources);
}

static int make_health(struct pages *p, struct loop *l, struct hm_err *e)
{
	const struct pages_config *c = &p->config;

	p->health_sources = (struct health_sources) { offers_main(c->offers), cards_driver(c->cards), c->reload };
	if (c->options->healthz_bind_address == NULL)
		return 0;
	return health_serve(l, c->options->healthz_bind_address, &p->health_sources, &p->health, e);
}

/* HAMi's Service leads to METRICS_HAMI_ADDRESS: served there unasked, where it can be. */
static int make_metrics(struct pages *p, struct loop *l, struct hm_err *e)
{
	const struct pages_config *c = &p->config;
	const struct hami_mode *hami = offers_hami(c->offers);
	const char *asked = c->options->metrics_bind_address;
	bool unasked = asked == NULL && agent_is_hami(c->options);

	if (!unasked && (asked == NULL || asked[0] == '\0'))
		return 0;
	if (card_usage_new(l, c->worker, cards_driver(c->cards), &p->usage, e) < 0)
		return -e->code;
	p->metrics_sources = (struct metrics_sources) { .options = c->options,
							.paths = c->paths,
							.claims = c->claims,
							.cluster = c->cluster,
							.publish = hami != NULL ? hami_mode_publish(hami) : NULL,
							.pods = hami != NULL ? hami_mode_pods(hami) : NULL,
							.mig = hami != NULL ? hami_mode_mig(hami) : NULL,
							.cards = c->cards,
							.usage = p->usage,
							.reload = c->reload };
	show_resources(p);
	if (metrics_serve(l, unasked ? METRICS_HAMI_ADDRESS : asked, &p->metrics_sources, &p->metrics, e) < 0) {
		if (!unasked)
			return -e->code;
		log_warn("no metrics are served", KV_ERR(e));
	}
	return 0;
}

int pages_new(struct loop *l, const struct pages_config *config, struct pages **out, struct hm_err *e)
{
	struct pages *p = calloc(1, sizeof *p);

	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "pages");
	p->config = *config;
	if (make_health(p, l, e) < 0 || make_metrics(p, l, e) < 0) {
		pages_free(p);
		return -e->code;
	}
	*out = p;
	return 0;
}

void pages_stop(struct pages *p)
{
	http_server_free(HM_STEAL(p->health));
	http_server_free(HM_STEAL(p->metrics));
}

void pages_free(struct pages *p)
{
	if (p == NULL)
		return;
	pages_stop(p);
	card_usage_free(p->usage);
	free(p);
}

void pages_take(struct pages *p, const struct fleet *f)
{
	if (p->usage == NULL)
		return;
	card_usage_set_cards(p->usage, fleet_inventory(f));
	show_resources(p);
}
