#include "agent/cards/cards.h"

#include <stdlib.h>

#include "agent/cards/card_checks.h"
#include "base/log.h"

struct cards {
	struct loop *loop;
	struct worker *worker;
	const struct agent_options *options;
	struct cards_listener listener;
	struct driver *driver;
	struct card_checks *checks;
	struct fleet *fleet;
	bool stopped, scanned_once, waiting_said;
};

/* Takes the new cards if they differ from the old: then 1. No part must ever see a fleet that is gone. */
static int take_fleet(struct cards *c, struct fleet *take_fresh, struct hm_err *e)
{
	hm_auto(fleet) *before = NULL;
	hm_auto(fleet) *fresh = take_fresh;

	if (c->fleet != NULL && fleet_equal(c->fleet, fresh))
		return 0;
	if (c->listener.take(c->listener.arg, fresh, e) < 0)
		return -e->code;
	before = c->fleet;
	c->fleet = HM_STEAL(fresh);
	return 1;
}

static void log_left_out(const struct inventory *scanned)
{
	for (size_t i = 0; scanned != NULL && i < scanned->skipped_count; i++)
		log_warn("a card is left out", KV("why", scanned->skipped[i]));
}

static int update(struct cards *c, const struct inventory *scanned, struct hm_err *e)
{
	struct fleet *fresh = NULL;
	int r = card_checks_scanned(c->checks, c->fleet, scanned, &fresh, e);

	if (r == 0)
		r = take_fleet(c, fresh, e);
	if (r <= 0)
		return r;
	log_left_out(scanned);
	if (fleet_inventory(c->fleet)->count == 0)
		log_warn("no GPU was found on this node: nothing is offered");
	return 0;
}

static void on_health_changed(void *arg)
{
	struct cards *c = arg;
	struct fleet *fresh = NULL;
	struct hm_err e;

	if (!c->stopped && c->fleet != NULL &&
	    (card_checks_judge(c->checks, c->fleet, &fresh, &e) < 0 || take_fleet(c, fresh, &e) < 0))
		log_error("cannot say that the health of a card changed", KV_ERR(&e));
}

static void on_no_driver(struct cards *c, const struct hm_err *why)
{
	struct hm_err e;

	if (!c->scanned_once && c->options->fail_on_init_error) {
		c->listener.failed(c->listener.arg, why);
		return;
	}
	if (!c->waiting_said)
		log_warn(c->fleet == NULL ? "waiting for the driver" : "the driver is gone; waiting for it",
			 KV_ERR(why));
	c->waiting_said = true;
	c->scanned_once = true;
	if (c->fleet != NULL && update(c, NULL, &e) < 0)
		log_error("cannot mark the cards lost", KV_ERR(&e));
}

static void on_cards(struct cards *c, const struct inventory *inv)
{
	bool first = c->fleet == NULL;
	struct hm_err e;

	if (c->waiting_said)
		log_info("the driver is there");
	c->waiting_said = false;
	c->scanned_once = true;
	if (update(c, inv, &e) == 0)
		c->listener.scanned(c->listener.arg);
	else if (first) /* a cut that does not fit never will: said at once, not met by the first pod */
		c->listener.failed(c->listener.arg, &e);
	else
		log_error("the cards have changed and cannot be cut; the old ones stay", KV_ERR(&e));
}

static void on_scanned(void *arg, const struct inventory *inv, const struct hm_err *why)
{
	struct cards *c = arg;

	if (c->stopped)
		return;
	if (inv == NULL)
		on_no_driver(c, why);
	else
		on_cards(c, inv);
}

int cards_new(struct loop *l, struct worker *w, const struct agent_options *o, const struct cards_listener *listener,
	      struct cards **out, struct hm_err *e)
{
	struct cards *c = calloc(1, sizeof *c);
	const struct driver_listener scans = { on_scanned, c };
	const struct driver_place place = { o->nvml_library, agent_is_hami(o) ? o->hami.driver_root_ctr_path : NULL };

	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "cards");
	c->loop = l;
	c->worker = w;
	c->options = o;
	c->listener = *listener;
	if (driver_new(l, w, &place, &scans, &c->driver, e) < 0) {
		free(c);
		return -e->code;
	}
	*out = c;
	return 0;
}

int cards_check(struct cards *c, const struct agent_paths *paths, const struct claims *claims, struct cluster *cluster,
		struct hm_err *e)
{
	const struct card_checks_config config = { .options = c->options,
						   .paths = paths,
						   .worker = c->worker,
						   .driver = c->driver,
						   .claims = claims,
						   .cluster = cluster,
						   .changed = on_health_changed,
						   .arg = c };

	return card_checks_new(c->loop, &config, &c->checks, e);
}

void cards_stop(struct cards *c, void (*closed)(void *arg), void *arg)
{
	c->stopped = true;
	driver_stop(c->driver, closed, arg);
}

void cards_free(struct cards *c, bool worker_ended)
{
	if (c == NULL)
		return;
	card_checks_free(c->checks);
	driver_free(c->driver, worker_ended);
	fleet_free(c->fleet);
	free(c);
}

const struct fleet *cards_fleet(const struct cards *c)
{
	return c->fleet;
}

struct driver *cards_driver(const struct cards *c)
{
	return c->driver;
}

const struct card_health *cards_health(const struct cards *c)
{
	return card_checks_health(c->checks);
}
