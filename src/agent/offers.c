#include "agent/offers.h"

#include <stdlib.h>
#include <string.h>

#include "agent/serve/offer_mig.h"
#include "agent/serve/offer_single.h"
#include "agent/serve/offer_slices.h"
#include "contract/host.h"

struct offers {
	struct loop *loop;
	struct offers_config config;
	struct resource *main;
	struct mig_static *mig; /* NULL: MIG devices have no resources of their own */
	struct hami_mode *hami; /* NULL: another mode */
};

static bool mig_strategy_is(const struct offers *o, const char *strategy)
{
	return strcmp(o->config.options->hami.mig_strategy, strategy) == 0;
}

static int make_single(struct offers *o, struct offer **offer, struct hm_err *e)
{
	const struct offer_mig_config config = { .options = o->config.options,
						 .claims = o->config.claims,
						 .resource = o->config.options->resource_name,
						 .profile = "" };
	struct offer *whole = *offer, *mig;

	if (offer_mig_new(&config, &mig, e) == 0)
		return offer_single_new(whole, mig, offer, e);
	offer_free(whole);
	return -e->code;
}

static int make_hami(struct offers *o, struct offer **offer, struct hm_err *e)
{
	const struct offers_config *c = &o->config;
	const struct hami_mode_config config = { .options = c->options,
						 .paths = c->paths,
						 .claims = c->claims,
						 .cluster = c->cluster,
						 .worker = c->worker,
						 .driver = cards_driver(c->cards),
						 .cards = cards_health(c->cards),
						 .restart = c->restart,
						 .arg = c->arg };

	if (hami_mode_new(o->loop, &config, &o->hami, e) < 0 || hami_mode_offer(o->hami, offer, e) < 0)
		return -e->code;
	return mig_strategy_is(o, "single") ? make_single(o, offer, e) : 0;
}

static int make(struct offers *o, struct hm_err *e)
{
	const struct offers_config *c = &o->config;
	struct resource_config config = { .service = { .options = c->options,
						       .paths = c->paths,
						       .claims = c->claims,
						       .counter = c->counter,
						       .pending = c->pending,
						       .edits = c->edits,
						       .started = c->started,
						       .life = c->life,
						       .cluster = c->cluster,
						       .arg = c->arg },
					  .socket = HM_PLUGIN_SOCKET,
					  .started_ms = c->started_ms,
					  .registered = c->registered,
					  .arg = c->arg };
	struct offer *offer;
	int r;

	if (mig_strategy_is(o, "mixed") && mig_static_new(o->loop, &config, &o->mig, e) < 0)
		return -e->code;
	r = agent_is_hami(c->options) ? make_hami(o, &offer, e)
				      : offer_slices_new(c->options, c->paths, c->claims, &offer, e);
	if (r < 0)
		return r;
	if (o->hami != NULL)
		config.socket = hami_mode_socket(o->hami);
	return resource_new(o->loop, offer, &config, &o->main, e);
}

int offers_new(struct loop *l, const struct offers_config *config, struct offers **out, struct hm_err *e)
{
	hm_auto(offers) *o = calloc(1, sizeof *o);

	if (o == NULL)
		return hm_err_set(e, HM_ENOMEM, "offers");
	o->loop = l;
	o->config = *config;
	if (make(o, e) < 0)
		return -e->code;
	*out = HM_STEAL(o);
	return 0;
}

void offers_free(struct offers *o)
{
	if (o == NULL)
		return;
	resource_free(o->main);
	mig_static_free(o->mig);
	hami_mode_free(o->hami);
	free(o);
}

int offers_take(struct offers *o, const struct fleet *f, struct hm_err *e)
{
	if (resource_take(o->main, f, e) < 0 || (o->mig != NULL && mig_static_take(o->mig, f, e) < 0))
		return -e->code;
	if (o->hami != NULL)
		hami_mode_take(o->hami, f);
	return 0;
}

void offers_start(struct offers *o)
{
	resource_start(o->main);
}

void offers_stop(struct offers *o)
{
	resource_stop(o->main);
	if (o->mig != NULL)
		mig_static_stop(o->mig);
}

const struct resource *offers_main(const struct offers *o)
{
	return o->main;
}

size_t offers_list(const struct offers *o, const struct resource *out[static OFFERS_MAX])
{
	size_t n = 0;

	out[n++] = o->main;
	for (size_t i = 0; o->mig != NULL && i < mig_static_count(o->mig); i++)
		out[n++] = mig_static_at(o->mig, i);
	return n;
}

bool offers_has_mig(const struct offers *o)
{
	return o->mig != NULL;
}

struct hami_mode *offers_hami(const struct offers *o)
{
	return o->hami;
}
