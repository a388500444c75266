#include "agent/cards/card_checks.h"

#include <stdlib.h>

#include "agent/cards/card_memory.h"
#include "agent/cards/card_tell.h"
#include "agent/cards/card_watch.h"
#include "base/log.h"
#include "io/file.h"

struct card_checks {
	struct loop *loop;
	struct card_checks_config config;
	struct card_health *health; /* NULL, as the watch: nothing is to be looked at */
	struct card_watch *watch;
	bool changed; /* the fleet was not judged since */
};

static struct card_now now(const struct card_checks *c)
{
	return (struct card_now) { loop_now_ms(c->loop), clock_wall_ms() };
}

static void remember(void *arg, const struct card_state *s)
{
	const struct card_checks *c = arg;
	char mark[CARD_MARK_BYTES];
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)s;
	card_memory_mark("/proc", "/sys", mark);
	card_memory_text(c->health, mark, &text);
	if (str_failed(&text) || file_replace(c->config.paths->health.s, text.p, text.n, 0644, &e) < 0)
		log_warn("which cards are sick is not kept: the next agent will not know it",
			 KV("path", c->config.paths->health.s));
}

static void recall(struct card_checks *c)
{
	const char *path = c->config.paths->health.s;
	char mark[CARD_MARK_BYTES];
	hm_auto_str text = { 0 };
	struct hm_err e = { 0 };

	if (file_read(path, CARD_MEMORY_MAX_BYTES, &text, &e) == -HM_ENOTFOUND)
		return;
	card_memory_mark("/proc", "/sys", mark);
	if (e.code != 0 || card_memory_parse(str_text(&text), text.n, mark, c->health, &e) < 0)
		log_warn("which cards were sick cannot be read; they count as well", KV("path", path), KV_ERR(&e));
	for (size_t i = 0; i < card_health_count(c->health); i++)
		log_warn("a card is sick, as the agent before this one knew",
			 KV("uuid", card_health_at(c->health, i)->uuid), KV("why", card_health_at(c->health, i)->why));
}

static void on_turned(void *arg, const struct card_state *s)
{
	struct card_checks *c = arg;

	c->changed = true;
	card_tell(c->config.cluster, c->config.claims, s, now(c));
	remember(c, s);
}

static void on_looked(void *arg)
{
	struct card_checks *c = arg;

	if (c->changed)
		c->config.changed(c->config.arg);
}

static int make(struct card_checks *c, struct loop *l, struct hm_err *e)
{
	const struct card_listener listener = { on_turned, remember, c };
	struct card_watch_config watch = { c->config.worker, c->config.driver, NULL, on_looked, c };
	const struct agent_options *o = c->config.options;
	struct health_policy policy;
	hm_auto_str unread = { 0 };

	health_policy_init(&policy, o->device_health_checks, o->disable_health_checks, o->enable_health_checks,
			   &unread);
	if (unread.n > 0)
		log_warn("what is no health check is passed over", KV("words", str_text(&unread)));
	if (!policy.any)
		return 0;
	if (card_health_new(&policy, o->health_recovery_seconds * 1000, &listener, &c->health, e) < 0)
		return -e->code;
	recall(c);
	watch.health = c->health;
	return card_watch_new(l, &watch, &c->watch, e);
}

int card_checks_new(struct loop *l, const struct card_checks_config *config, struct card_checks **out, struct hm_err *e)
{
	struct card_checks *c = calloc(1, sizeof *c);

	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "health checks");
	c->loop = l;
	c->config = *config;
	if (make(c, l, e) < 0) {
		card_checks_free(c);
		return -e->code;
	}
	*out = c;
	return 0;
}

void card_checks_free(struct card_checks *c)
{
	if (c == NULL)
		return;
	card_watch_free(c->watch);
	card_health_free(c->health);
	free(c);
}

int card_checks_scanned(struct card_checks *c, const struct fleet *before, const struct inventory *scanned,
			struct fleet **out, struct hm_err *e)
{
	hm_auto(fleet) *seen = NULL;

	if (fleet_new(before, scanned, &seen, e) < 0)
		return -e->code;
	if (c->health != NULL) {
		card_health_scanned(c->health, scanned, now(c));
		card_watch_soon(c->watch);
	}
	return card_checks_judge(c, seen, out, e);
}

int card_checks_judge(struct card_checks *c, const struct fleet *f, struct fleet **out, struct hm_err *e)
{
	int r = fleet_judge(f, c->health, out, e);

	c->changed = c->changed && r < 0;
	return r;
}

const struct card_health *card_checks_health(const struct card_checks *c)
{
	return c->health;
}
