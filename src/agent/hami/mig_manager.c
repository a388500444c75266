#include "agent/hami/mig_manager.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cards/mig_cards.h"
#include "agent/hami/hami_late.h"
#include "agent/hami/mig_fill.h"
#include "agent/hami/mig_holds.h"
#include "agent/hami/mig_job.h"
#include "agent/hami/mig_tell.h"
#include "base/log.h"
#include "core/fmt.h"

struct mig_manager {
	struct loop *loop;
	struct mig_manager_config config;
	struct loop_timer *timer;
	struct mig_holds *holds;
	struct mig_tell *tell;
	struct pods_listener listener;
	const struct fleet *fleet; /* NULL: no cards yet */
	bool paused;               /* publishing has stopped for us */
	bool prepared;
	uint64_t prepare_at_ms; /* no card before */
	uint64_t orphans_at_ms; /* when they are looked for again: what was scanned before is known */
	struct mig_job *job;    /* in the worker's hands, or NULL */
	struct mig_manager_stats stats;
};

static void look(struct mig_manager *m);

/* ---- steps */

static uint32_t wait_after(uint32_t tries)
{
	uint32_t ms = (uint32_t)MIG_RETRY_MS << HM_MIN(tries, 5U);

	return HM_MIN(ms, (uint32_t)MIG_RETRY_MAX_MS);
}

static struct mig_step step_of(const struct mig_hold *h, enum mig_step_kind kind)
{
	struct mig_step s = {
		.kind = kind, .at = h->at, .gi = h->made.gi, .container = h->container, .device = h->device
	};

	hm_fmt(s.gpu_uuid, sizeof s.gpu_uuid, "%s", h->gpu_uuid);
	hm_fmt(s.profile, sizeof s.profile, "%s", h->profile);
	hm_fmt(s.pod_uid, sizeof s.pod_uid, "%s", h->pod_uid);
	return s;
}

static const struct card *our_card(const struct mig_manager *m, const char *gpu_uuid)
{
	const struct card *card = inventory_find(fleet_inventory(m->fleet), gpu_uuid);

	return card != NULL && mig_cards_is_ours(&m->config.options->hami, card) ? card : NULL;
}

/* What stands at the hold's place, or is to, is another's: the scheduler gives a place away when its pod is over, which
 * may be before its container is, and a text that is not signed may name any place. */
static bool is_taken(const struct mig_manager *m, const struct mig_job *j, const struct mig_hold *h,
		     const struct card *card)
{
	for (size_t i = 0; i < card->mig.device_count; i++) {
		const struct mig_device *d = &card->mig.devices[i];
		const struct claim *c = mig_overlaps(d->at, h->at) ? claims_holder(m->config.claims, d->uuid) : NULL;

		if (c != NULL && strcmp(c->pod_uid, h->pod_uid) != 0 && !mig_holds_ended(m->holds, c->pod_uid))
			return true;
	}
	for (size_t i = 0; i < j->count; i++)
		if (strcmp(j->steps[i].gpu_uuid, h->gpu_uuid) == 0 && mig_overlaps(j->steps[i].at, h->at))
			return true;
	return mig_holds_rival(m->holds, h);
}

static bool may_make(const struct mig_manager *m, const struct mig_job *j, struct mig_hold *h)
{
	const struct card *card = our_card(m, h->gpu_uuid);

	if (card != NULL && !is_taken(m, j, h, card))
		return true;
	if (card == NULL)
		hm_fmt(h->trouble, sizeof h->trouble, "card %s is none that this node cuts", h->gpu_uuid);
	else
		hm_fmt(h->trouble, sizeof h->trouble, "what another container has at %u:%u has not ended", h->at.start,
		       h->at.size);
	return false;
}

static bool may_end(const struct mig_manager *m, const struct mig_hold *h)
{
	const struct claim *c = claims_holder(m->config.claims, h->made.uuid);

	return (c == NULL || (h->ended && strcmp(c->pod_uid, h->pod_uid) == 0)) &&
	       !mig_holds_blind(m->holds, h->gpu_uuid);
}

/* True: the hold at i has gone from the table. */
static bool add_hold(struct mig_manager *m, struct mig_job *j, size_t i, uint64_t now)
{
	struct mig_hold *h = mig_holds_at(m->holds, i);
	struct mig_step s;

	if (h->over && !mig_holds_rival(m->holds, h))
		mig_hold_find_made(h, fleet_inventory(m->fleet));
	if (h->over && (!h->ready || mig_holds_passes_on(m->holds, h))) {
		mig_holds_remove(m->holds, i);
		return true;
	}
	if ((!h->over && (h->ready || h->bad)) || now < h->not_before_ms ||
	    !(h->over ? may_end(m, h) : may_make(m, j, h)))
		return false;
	s = step_of(h, h->over ? MIG_END : MIG_ENSURE);
	if (!mig_job_add(j, &s))
		h->not_before_ms = now + MIG_RETRY_MS;
	return false;
}

/* An instance that no pod holds: its pod ended while nobody looked, or somebody made it by hand. */
static void add_orphans(const struct mig_manager *m, struct mig_job *j, const struct card *card)
{
	const struct mig_card *c = &card->mig;

	for (size_t i = 0; i < c->device_count + c->bare_count; i++) {
		const struct mig_device *d = i < c->device_count ? &c->devices[i] : &c->bare[i - c->device_count];
		struct mig_step s = { .kind = MIG_END, .at = d->at, .gi = d->gi };

		if (d->at.size == 0 || mig_holds_place(m->holds, card->uuid, d->at) ||
		    (d->uuid[0] != '\0' && claims_holder(m->config.claims, d->uuid) != NULL))
			continue;
		hm_fmt(s.gpu_uuid, sizeof s.gpu_uuid, "%s", card->uuid);
		hm_fmt(s.profile, sizeof s.profile, "%s", d->profile);
		if (!mig_job_add(j, &s))
			return;
	}
}

/* Containers hold of it, or pods: what stands there is theirs. */
static bool is_held(const struct mig_manager *m, const struct card *card)
{
	return mig_holds_card(m->holds, card->uuid) || claims_holder(m->config.claims, card->uuid) != NULL;
}

static void add_preparation(const struct card *card, struct mig_job *j)
{
	struct mig_step s = { .kind = MIG_PREPARE };

	hm_fmt(s.gpu_uuid, sizeof s.gpu_uuid, "%s", card->uuid);
	if (!mig_job_add(j, &s))
		log_error("out of memory: a card is not prepared", KV("uuid", card->uuid));
}

static void add_preparations(const struct mig_manager *m, struct mig_job *j)
{
	const struct inventory *inv = fleet_inventory(m->fleet);

	for (size_t i = 0; i < inv->count; i++) {
		const struct card *card = &inv->cards[i];

		if (our_card(m, card->uuid) == NULL)
			log_warn("operating mode mig: a card is not offered: it has no MIG, or migProfileAllowlist "
				 "does not name its model",
				 KV("uuid", card->uuid), KV("model", card->model));
		else if (is_held(m, card))
			log_info("a card stays as it is: pods hold it", KV("uuid", card->uuid));
		else
			add_preparation(card, j);
	}
}

/* A card that was held at our start, came later, or has lost its mode by a reset. */
static void add_late(const struct mig_manager *m, struct mig_job *j, const struct card *card, uint64_t now)
{
	if (card->mig_enabled)
		add_orphans(m, j, card);
	else if (now >= m->prepare_at_ms && fleet_is_healthy(m->fleet, card) && !is_held(m, card))
		add_preparation(card, j);
}

/* ---- what came of them */

static void on_prepared(struct mig_manager *m, const struct mig_step *s)
{
	bool done = s->err.code == 0;

	/* What was done is known with the next scan. */
	m->prepare_at_ms =
		HM_MAX(m->prepare_at_ms, loop_now_ms(m->loop) + (done ? MIG_ORPHANS_MS : MIG_PREPARE_AGAIN_MS));
	if (done) {
		log_info("a card is ready for MIG", KV("uuid", s->gpu_uuid));
		return;
	}
	m->stats.failures++;
	log_warn("a card is not prepared for MIG; it stays as it is", KV("uuid", s->gpu_uuid), KV_ERR(&s->err));
	cluster_tell_node(m->config.cluster, "Warning", "MIGNotPrepared", "GPU %s stays as it is: %s", s->gpu_uuid,
			  s->err.msg);
}

static void on_ensured(struct mig_manager *m, const struct mig_step *s, struct mig_hold *h)
{
	if (s->err.code == 0) {
		h->made = s->made;
		h->ready = true;
		h->trouble[0] = '\0';
		h->tries = 0;
		m->stats.made++;
		log_info("a MIG device is ready", KV("uuid", s->made.uuid), KV("profile", h->profile),
			 KV("gpu", h->gpu_uuid), KV("pod", h->pod), KV("namespace", h->name_space));
		return;
	}
	m->stats.failures++;
	h->bad = s->err.code == HM_EINVAL;
	hm_fmt(h->trouble, sizeof h->trouble, "%s", s->err.msg);
	h->not_before_ms = loop_now_ms(m->loop) + wait_after(h->tries++);
	log_warn("a MIG device cannot be made", KV("pod", h->pod), KV("namespace", h->name_space), KV_ERR(&s->err));
}

static void on_ended(struct mig_manager *m, const struct mig_step *s)
{
	struct mig_hold *h = NULL;
	size_t i;

	for (i = 0; s->pod_uid[0] != '\0' && i < mig_holds_count(m->holds); i++) {
		h = mig_holds_at(m->holds, i);
		if (h->over && strcmp(h->pod_uid, s->pod_uid) == 0 && h->container == s->container &&
		    h->device == s->device && h->at.start == s->at.start && strcmp(h->gpu_uuid, s->gpu_uuid) == 0)
			break;
		h = NULL;
	}
	if (s->err.code == 0) {
		m->stats.ended++;
		log_info("a MIG device has ended", KV("profile", s->profile), KV("gpu", s->gpu_uuid),
			 KV_U64("start", s->at.start));
		if (h != NULL)
			mig_holds_remove(m->holds, i);
		return;
	}
	m->stats.failures++;
	log_v(1, "a MIG device cannot be ended yet", KV("gpu", s->gpu_uuid), KV_U64("gi", s->gi), KV_ERR(&s->err));
	if (h != NULL)
		h->not_before_ms = loop_now_ms(m->loop) + wait_after(h->tries++);
}

static void tell_pods(struct mig_manager *m)
{
	for (size_t i = 0; i < mig_holds_count(m->holds); i++) {
		const struct mig_hold *h = mig_holds_at(m->holds, i);

		if (h->ready && !h->over && !h->told)
			mig_tell_pod(m->tell, h);
	}
}

static void on_done(struct worker_job *job)
{
	struct mig_job *j = HM_CONTAINER(job, struct mig_job, job);
	struct mig_manager *m = j->arg;
	bool changed = false;

	m->job = NULL;
	for (size_t i = 0; i < j->count; i++) {
		const struct mig_step *s = &j->steps[i];
		struct mig_hold *h = mig_holds_find(m->holds, s->pod_uid, s->container, s->device);

		changed |= s->err.code == 0;
		if (s->kind == MIG_PREPARE)
			on_prepared(m, s);
		else if (s->kind == MIG_END)
			on_ended(m, s);
		else if (h != NULL && h->at.start == s->at.start && strcmp(h->gpu_uuid, s->gpu_uuid) == 0)
			on_ensured(m, s, h);
	}
	mig_job_free(j);
	if (!m->prepared) {
		m->prepared = true;
		card_pause_end(m->config.pause);
	}
	if (changed)
		driver_scan_soon(m->config.driver);
	tell_pods(m);
	look(m);
}

/* ---- the next round */

static void submit(struct mig_manager *m, struct mig_job *j)
{
	if (j->count == 0) {
		mig_job_free(j);
		return;
	}
	m->job = j;
	worker_submit(m->config.worker, &j->job);
}

static void prepare(struct mig_manager *m)
{
	struct mig_job *j;

	if (!m->paused || m->fleet == NULL || !pods_synced(m->config.pods))
		return;
	j = mig_job_new(m->config.driver, on_done, m);
	if (j == NULL)
		return; /* at the next look */
	add_preparations(m, j);
	if (j->count == 0) {
		m->prepared = true;
		card_pause_end(m->config.pause);
	}
	submit(m, j);
}

static void work(struct mig_manager *m)
{
	const struct inventory *inv = fleet_inventory(m->fleet);
	struct mig_job *j = mig_job_new(m->config.driver, on_done, m);
	uint64_t now = loop_now_ms(m->loop);

	if (j == NULL)
		return;
	for (size_t i = 0; i < mig_holds_count(m->holds);)
		if (!add_hold(m, j, i, now))
			i++;
	for (size_t i = 0; now >= m->orphans_at_ms && i < inv->count; i++)
		if (our_card(m, inv->cards[i].uuid) != NULL)
			add_late(m, j, &inv->cards[i], now);
	if (now >= m->orphans_at_ms)
		m->orphans_at_ms = now + MIG_ORPHANS_MS;
	submit(m, j);
}

static void look(struct mig_manager *m)
{
	if (m->job != NULL)
		return;
	if (!m->prepared)
		prepare(m);
	if (m->prepared && m->job == NULL && m->fleet != NULL)
		work(m);
	loop_timer_arm(m->timer, MIG_LOOK_MS);
}

static void on_timer(void *arg)
{
	look(arg);
}

static void on_paused(void *arg)
{
	struct mig_manager *m = arg;

	m->paused = true;
	look(m);
}

/* ---- pods and cards */

static void on_pod(void *arg, const struct pod_view *v)
{
	struct mig_manager *m = arg;
	struct hm_err e;

	/* Trust is for what is to be made; a pod that is over gives back what it had, whoever wrote its text since. */
	if (!pod_view_is_bound_to(v, cluster_node(m->config.cluster)) ||
	    (!v->terminal && v->annotations[POD_MIG_ALLOCATIONS] != NULL && !hami_late_trusts(m->config.late, v)))
		return;
	if (mig_holds_take(m->holds, v, &e) < 0)
		log_error("a pod's MIG reservation is not taken yet", KV("pod", v->name), KV_ERR(&e));
	tell_pods(m);
	look(m);
}

static void on_pod_gone(void *arg, const struct pod_view *v)
{
	struct mig_manager *m = arg;

	mig_holds_gone(m->holds, v);
	look(m);
}

static void on_synced(void *arg)
{
	look(arg);
}

void mig_manager_take(struct mig_manager *m, const struct fleet *f)
{
	m->fleet = f;
	m->orphans_at_ms = 0;
	mig_holds_check(m->holds, fleet_inventory(f));
	look(m);
}

/* ---- a container's start */

int mig_manager_fill(struct mig_manager *m, const struct pod_view *v, const char *container, uint32_t entry,
		     size_t count, struct claim *out, struct hm_err *e)
{
	if (m->fleet == NULL || !m->prepared)
		return hm_err_set(e, HM_EAGAIN, "the cards are not ready for MIG yet");
	if (mig_holds_take(m->holds, v, e) < 0)
		return -e->code;
	return mig_fill(m->holds, fleet_inventory(m->fleet), v->uid, container, entry, count, out, e);
}

/* ---- life */

void mig_manager_stats(const struct mig_manager *m, struct mig_manager_stats *out)
{
	struct mig_tell_stats tell;

	*out = m->stats;
	mig_tell_stats(m->tell, &tell);
	out->patches = tell.patches;
	out->conflicts = tell.conflicts;
	out->prepared = m->prepared;
	out->holds = mig_holds_count(m->holds);
	for (size_t i = 0; i < out->holds; i++) {
		const struct mig_hold *h = mig_holds_at(m->holds, i);

		out->over += h->over;
		out->ready_held += h->ready && !h->over;
	}
}

int mig_manager_new(struct loop *l, const struct mig_manager_config *config, struct mig_manager **out, struct hm_err *e)
{
	hm_auto(mig_manager) *m = calloc(1, sizeof *m);

	if (m == NULL || (m->holds = mig_holds_new()) == NULL)
		return hm_err_set(e, HM_ENOMEM, "MIG manager");
	m->loop = l;
	m->config = *config;
	if (loop_timer_new(l, on_timer, m, &m->timer, e) < 0 ||
	    mig_tell_new(cluster_client(config->cluster), m->holds, &m->tell, e) < 0)
		return -e->code;
	m->listener = (struct pods_listener) { .changed = on_pod, .gone = on_pod_gone, .synced = on_synced, .arg = m };
	pods_listen(config->pods, &m->listener);
	card_pause_begin(config->pause, on_paused, m);
	loop_timer_arm(m->timer, MIG_LOOK_MS);
	*out = HM_STEAL(m);
	return 0;
}

/* A job that hangs in NVML is left to the process's end. */
void mig_manager_free(struct mig_manager *m)
{
	if (m == NULL)
		return;
	link_remove(&m->listener.link);
	if (m->job != NULL && !m->job->job.pending)
		mig_job_free(m->job);
	mig_tell_free(m->tell);
	mig_holds_free(m->holds);
	loop_timer_free(m->timer);
	free(m);
}
