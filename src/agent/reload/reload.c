#include "agent/reload/reload.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reload/options_change.h"
#include "base/log.h"
#include "io/dir_watch.h"

enum {
	MAX_FILES = 3,
	SETTLE_MS = 200,   /* a file is often written in more than one step */
	REWATCH_MS = 2000, /* for a folder that has gone */
};

/* One file and the folder that it lies in. */
struct watched {
	struct reload *reload;
	char folder[1024];
	const char *name;        /* in the options */
	struct dir_watch *watch; /* NULL: the folder is not there */
};

struct reload {
	struct loop *loop;
	struct reload_config config;
	struct loop_signal *hangup;
	struct loop_timer *settle, *rewatch;
	struct watched files[MAX_FILES];
	size_t count;
	uint64_t applied, refused;
	struct hm_err trouble; /* code 0: none */
};

static void refuse(struct reload *r, const struct hm_err *e)
{
	r->trouble = *e;
	r->refused++;
	log_error("the new configuration is refused; the former one stays", KV_ERR(e));
	r->config.refused(r->config.arg, e);
}

static void apply_live(struct reload *r, struct agent_options *fresh, const char *names)
{
	struct hm_err e;

	options_change_swap(r->config.options, fresh);
	if (r->config.changed(r->config.arg, &e) < 0) {
		options_change_swap(r->config.options, fresh);
		hm_err_wrap(&e, "%s", names);
		refuse(r, &e);
		return;
	}
	r->applied++;
	log_info("the configuration has changed", KV("what", names));
}

void reload_now(struct reload *r)
{
	struct agent_options fresh;
	hm_auto_str names = { 0 };
	struct hm_err e;

	if (options_change_read(r->config.options, &fresh, &e) < 0) {
		refuse(r, &e);
		return;
	}
	r->trouble.code = 0;
	switch (options_change_of(r->config.options, &fresh, &names)) {
	case OPTIONS_SAME: log_debug("the configuration is what it was"); break;
	case OPTIONS_LIVE: apply_live(r, &fresh, str_text(&names)); break;
	case OPTIONS_RESTART:
		log_info("the configuration has changed; the agent is made anew", KV("what", str_text(&names)));
		r->config.restart(r->config.arg);
		break;
	}
	options_change_fini(&fresh);
}

static void on_settled(void *arg)
{
	reload_now(arg);
}

static void on_hangup(void *arg)
{
	struct reload *r = arg;

	log_info("asked to read the configuration again");
	loop_timer_disarm(r->settle);
	reload_now(r);
}

/* ---- files */

static void on_event(void *arg, enum dir_event event, const char *name)
{
	struct watched *w = arg;
	struct reload *r = w->reload;

	if (event == DIR_GONE) {
		dir_watch_free(HM_STEAL(w->watch));
		loop_timer_arm(r->rewatch, REWATCH_MS);
		return;
	}
	/* A file that is taken away is about to be replaced, or stays away, which changes nothing until the next look.
	 */
	if (event != DIR_DELETED && (strcmp(name, w->name) == 0 || strcmp(name, "..data") == 0))
		loop_timer_arm(r->settle, SETTLE_MS);
}

/* False where a folder is missing. */
static bool watch_all(struct reload *r)
{
	bool all = true;
	struct hm_err e;

	for (size_t i = 0; i < r->count; i++) {
		struct watched *w = &r->files[i];

		if (w->watch == NULL && dir_watch_new_writes(r->loop, w->folder, on_event, w, &w->watch, &e) < 0)
			all = false;
	}
	return all;
}

static void on_rewatch(void *arg)
{
	struct reload *r = arg;
	size_t before = 0, after = 0;

	for (size_t i = 0; i < r->count; i++)
		before += r->files[i].watch != NULL;
	if (!watch_all(r))
		loop_timer_arm(r->rewatch, REWATCH_MS);
	for (size_t i = 0; i < r->count; i++)
		after += r->files[i].watch != NULL;
	if (after > before) /* what happened while nobody watched */
		loop_timer_arm(r->settle, SETTLE_MS);
}

static void add_file(struct reload *r, const char *path)
{
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;
	struct watched *w = &r->files[r->count];
	size_t n;

	if (path == NULL || path[0] == '\0')
		return;
	n = slash != NULL ? (size_t)(slash - path) : 0;
	if (n >= sizeof w->folder)
		return;
	*w = (struct watched) { .reload = r, .name = slash != NULL ? slash + 1 : path };
	if (n > 0)
		memcpy(w->folder, path, n);
	else
		w->folder[0] = slash != NULL ? '/' : '.';
	r->count++;
}

int reload_new(struct loop *l, const struct reload_config *config, struct reload **out, struct hm_err *e)
{
	const struct agent_options *o = config->options;
	hm_auto(reload) *r = calloc(1, sizeof *r);

	*out = NULL;
	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "reload");
	r->loop = l;
	r->config = *config;
	if (loop_signal_new(l, SIGHUP, on_hangup, r, &r->hangup, e) < 0 ||
	    loop_timer_new(l, on_settled, r, &r->settle, e) < 0 || loop_timer_new(l, on_rewatch, r, &r->rewatch, e) < 0)
		return -e->code;
	add_file(r, o->config);
	if (agent_is_hami(o)) {
		add_file(r, o->hami.config_file);
		add_file(r, o->hami.node_config);
	}
	if (!watch_all(r))
		loop_timer_arm(r->rewatch, REWATCH_MS);
	*out = HM_STEAL(r);
	return 0;
}

void reload_free(struct reload *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->count; i++)
		dir_watch_free(r->files[i].watch);
	loop_timer_free(r->settle);
	loop_timer_free(r->rewatch);
	loop_signal_free(r->hangup);
	free(r);
}

struct reload_stats reload_stats(const struct reload *r)
{
	const char *at_start = r->config.options->hami.node_config_trouble;

	return (struct reload_stats) { r->applied, r->refused,
				       r->trouble.code != 0 ? r->trouble.msg
				       : at_start != NULL   ? at_start
							    : "" };
}
