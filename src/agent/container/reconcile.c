#include "agent/container/reconcile.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/claims/prestart.h"
#include "agent/container/binding.h"
#include "agent/container/container_dir.h"
#include "agent/processes/holders.h"
#include "agent/processes/sight.h"
#include "base/array.h"
#include "base/log.h"
#include "contract/hami.h"
#include "contract/host.h"
#include "contract/names.h"
#include "core/fmt.h"
#include "core/num.h"
#include "io/file.h"
#include "kubelet/checkpoint.h"

struct numbers {
	uint64_t *items;
	size_t count, cap;
};

struct reconcile {
	struct loop *loop;
	struct reconcile_config config;
	struct loop_timer *timer;
	uint64_t round;
	struct numbers unlisted; /* of the last round: one that is still unlisted now is taken for ended */
	char said[256];          /* the last trouble with the checkpoint */
	struct numbers untidy;   /* said: their usage folder holds more than it should */
	bool blind;              /* said that no container is visible */
};

/* ---- the numbers that lie about */

/* "<prefix><number><suffix>" */
static bool number_in_name(const char *name, const char *prefix, const char *suffix, uint64_t *out)
{
	size_t n = strlen(name), before = strlen(prefix), after = strlen(suffix);

	return n > before + after && memcmp(name, prefix, before) == 0 &&
	       memcmp(name + n - after, suffix, after) == 0 &&
	       num_u64(name + before, n - before - after, UINT64_MAX / 2, out);
}

static void collect(const char *folder, const char *prefix, const char *suffix, struct numbers *out)
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	uint64_t number;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (number_in_name(d->d_name, prefix, suffix, &number) &&
		    !HM_PUSH(out->items, out->count, out->cap, number))
			break;
	if (dir != NULL)
		closedir(dir);
}

static void collect_all(const struct agent_paths *p, struct numbers *out)
{
	collect(p->claims.s, "", "", out);
	collect(p->alloc.s, "", "", out);
	collect(p->cdi.s, HM_CDI_FILE_PREFIX, HM_CDI_FILE_SUFFIX, out);
}

static uint64_t max_listed(const struct checkpoint *c, const char *alloc_dir)
{
	uint64_t max = 0, number;
	bool classic;

	for (size_t i = 0; i < c->count; i++)
		if (prestart_entry_number(&c->entries[i], alloc_dir, &number, &classic))
			max = HM_MAX(max, number);
	return max;
}

static int read_all(const struct agent_paths *p, const char *resource, struct checkpoint **out, struct hm_err *e)
{
	const struct checkpoint_ours ours = { resource, HAMI_RESOURCE_MIG_PREFIX };

	return checkpoint_read_all(p->checkpoint.s, &ours, out, e);
}

uint64_t reconcile_max_number(const struct agent_paths *p, const char *resource)
{
	hm_auto(checkpoint) *checkpoint = NULL;
	struct numbers found = { 0 };
	struct hm_err e;
	uint64_t max = 0;
	int r;

	collect_all(p, &found);
	for (size_t i = 0; i < found.count; i++)
		max = HM_MAX(max, found.items[i]);
	free(found.items);
	r = read_all(p, resource, &checkpoint, &e);
	if (r == 0) {
		uint64_t listed = max_listed(checkpoint, p->alloc.s);

		max = HM_MAX(max, listed);
	} else if (r != -HM_ENOTFOUND) {
		log_warn("the kubelet's checkpoint cannot be read; numbers that it alone keeps may be given again",
			 KV_ERR(&e));
	}
	return max;
}

void reconcile_remove_temporaries(const struct agent_paths *p)
{
	file_remove_temporaries(p->state.s, "");
	file_remove_temporaries(p->claims.s, "");
	file_remove_temporaries(p->lib.s, "");
	file_remove_temporaries(p->cdi.s, HM_CDI_FILE_PREFIX);
}

/* ---- one round */

static bool has(const struct numbers *n, uint64_t number)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->items[i] == number)
			return true;
	return false;
}

static bool is_listed(const struct reconcile *r, const struct checkpoint *checkpoint, uint64_t number)
{
	return prestart_is_listed(checkpoint, r->config.paths->alloc.s, number);
}

/* A missing file is an empty one: a kubelet that never allocated, or lost it. What runs is found by its mounts. */
static int read_checkpoint(struct reconcile *r, struct checkpoint **out)
{
	struct hm_err e;
	int code = read_all(r->config.paths, r->config.resource, out, &e);

	if (code == -HM_ENOTFOUND) {
		*out = calloc(1, sizeof **out);
		return *out == NULL ? -HM_ENOMEM : 0;
	}
	if (code < 0 && strncmp(r->said, e.msg, sizeof r->said - 1) != 0) {
		log_warn("the kubelet's checkpoint cannot be read; ended containers are cleaned up later", KV_ERR(&e));
		hm_fmt(r->said, sizeof r->said, "%s", e.msg);
	}
	if (code == 0)
		r->said[0] = '\0';
	return code;
}

static void end(struct reconcile *r, uint64_t number, const char *why)
{
	struct hm_err e = { 0 };

	if (binding_remove(r->config.paths, r->config.claims, number, &e) == -HM_EAGAIN)
		log_v(1, "much is left behind by a container; going on later", KV_U64("number", number));
	else if (e.code != 0)
		log_warn("cannot clean up behind a container; trying again", KV_U64("number", number), KV_ERR(&e));
	else
		log_info("cleaned up behind a container", KV_U64("number", number), KV("why", why));
}

/* /proc is looked through at most once a round, and only if somebody asks. */
struct look {
	bool looked;
	struct holders *seen; /* NULL: nothing can be told, and everybody counts as alive */
};

static void say_blind(struct reconcile *r)
{
	if (!r->blind)
		log_warn("cannot see whether containers run: give this pod hostPID. Until then nothing is cleaned up "
			 "behind those that ended");
	r->blind = true;
}

static void look_at_proc(struct reconcile *r, struct look *look)
{
	struct hm_err e;

	look->looked = true;
	if (!sight_of_node("/proc", r->config.paths->kubelet_socket.s)) {
		say_blind(r);
		return;
	}
	r->blind = false;
	if (holders_scan("/proc", &look->seen, &e) < 0)
		log_warn("cannot see which containers run", KV_ERR(&e));
}

static bool lives(struct reconcile *r, struct look *look, uint64_t number)
{
	if (!look->looked)
		look_at_proc(r, look);
	return look->seen == NULL ||
	       holders_mounted(look->seen, agent_path_alloc(r->config.paths, number, HM_ALLOC_USAGE).s);
}

/* By our own watch, which knew the pod when its claim was written. With classic binding whose it is was guessed. */
static bool is_over(const struct pods *pods, const struct claim *c)
{
	const struct pod_view *v;

	if (pods == NULL || !pods_synced(pods) || c->pod_uid[0] == '\0' || c->cdi[0] == '\0')
		return false;
	v = pods_find(pods, c->pod_uid);
	return v == NULL || v->terminal;
}

static void end_unlisted(struct reconcile *r, const struct checkpoint *checkpoint, struct look *look)
{
	struct numbers now = { 0 }, over = { 0 };
	bool ok = true;

	for (size_t i = 0; ok && i < claims_count(r->config.claims); i++) {
		const struct claim *c = claims_at(r->config.claims, i);

		if (is_listed(r, checkpoint, c->number) && !pod_names_is_gone(r->config.names, c->number) &&
		    !is_over(r->config.pods, c))
			continue;
		ok = HM_PUSH(now.items, now.count, now.cap, c->number);
		if (ok && has(&r->unlisted, c->number) && !lives(r, look, c->number))
			ok = HM_PUSH(over.items, over.count, over.cap, c->number);
	}
	for (size_t i = 0; i < over.count; i++)
		end(r, over.items[i], "ended");
	free(over.items);
	free(r->unlisted.items);
	r->unlisted = now;
}

static void end_orphans(struct reconcile *r, const struct checkpoint *checkpoint, struct look *look)
{
	struct numbers found = { 0 };

	collect_all(r->config.paths, &found);
	for (size_t i = 0; i < found.count; i++) {
		uint64_t number = found.items[i];

		if (claims_find(r->config.claims, number) == NULL && !is_listed(r, checkpoint, number) &&
		    !lives(r, look, number))
			end(r, number, "left without a claim");
	}
	free(found.items);
}

static void look_at_usage(struct reconcile *r)
{
	struct numbers untidy = { 0 };

	for (size_t i = 0; i < claims_count(r->config.claims); i++) {
		const struct claim *c = claims_at(r->config.claims, i);
		bool said = has(&r->untidy, c->number);

		if (c->state != CLAIM_ACTIVE || (container_dir_tidy(r->config.paths, c->number) && !said))
			continue;
		if (!said)
			log_warn("a container writes more than it should into its usage folder, on the node's disk",
				 KV_U64("number", c->number), KV("pod_uid", c->pod_uid), KV("pod", c->pod_name),
				 KV("container", c->container));
		if (!HM_PUSH(untidy.items, untidy.count, untidy.cap, c->number))
			break;
	}
	free(r->untidy.items);
	r->untidy = untidy;
}

static void forget_pending(struct reconcile *r, const struct checkpoint *checkpoint)
{
	uint64_t now = loop_now_ms(r->loop);

	for (size_t i = pending_count(r->config.pending); i-- > 0;) {
		const struct pending_item *item = pending_at(r->config.pending, i);

		if (now - item->since_ms > RECONCILE_PENDING_MS && !is_listed(r, checkpoint, item->number))
			pending_remove(r->config.pending, item->number);
	}
}

static void on_timer(void *arg)
{
	struct reconcile *r = arg;
	hm_auto(checkpoint) *checkpoint = NULL;
	struct look look = { 0 };
	bool orphans = r->round++ % RECONCILE_ORPHANS_EVERY == 0;

	loop_timer_arm(r->timer, RECONCILE_EVERY_MS);
	counter_refill(r->config.counter, r->config.worker);
	if (!orphans && claims_count(r->config.claims) == 0 && pending_count(r->config.pending) == 0)
		return;
	if (read_checkpoint(r, &checkpoint) < 0)
		return;
	end_unlisted(r, checkpoint, &look);
	look_at_usage(r);
	forget_pending(r, checkpoint);
	if (orphans)
		end_orphans(r, checkpoint, &look);
	holders_free(look.seen);
}

int reconcile_new(struct loop *l, const struct reconcile_config *config, struct reconcile **out, struct hm_err *e)
{
	struct reconcile *r = calloc(1, sizeof *r);

	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "reconcile");
	r->loop = l;
	r->config = *config;
	if (loop_timer_new(l, on_timer, r, &r->timer, e) < 0) {
		free(r);
		return hm_err_wrap(e, "reconcile");
	}
	loop_timer_arm(r->timer, 200); /* behind the registration */
	*out = r;
	return 0;
}

void reconcile_free(struct reconcile *r)
{
	if (r == NULL)
		return;
	loop_timer_free(r->timer);
	free(r->unlisted.items);
	free(r->untidy.items);
	free(r);
}
