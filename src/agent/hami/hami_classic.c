#include "agent/hami/hami_classic.h"

#include <stdlib.h>
#include <string.h>

#include "agent/hami/pod_guess.h"
#include "base/log.h"
#include "contract/container.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/node_lock.h"

struct hami_classic {
	struct hami_classic_config config;
	char last_uid[POD_UID_BYTES];         /* answered last */
	uint64_t last_ms;                     /* and when */
	char lock[3 * NODE_LOCK_NAME_BYTES];  /* that names a pod we do not know */
	uint64_t lock_ms;                     /* since when */
	uint64_t call[HAMI_CLASSIC_CALL_MAX]; /* numbers that this call has been answered with */
	size_t call_count;
	struct loop_timer *look; /* at the checkpoint, behind an answer */
	unsigned looks;
	struct hami_classic_stats stats;
};

/* Everything that is known at a call, and what it points to. */
struct sight {
	struct pod_guess_facts facts;
	struct node_lock lock;
	const struct pod_view **pods; /* owned */
};

static uint64_t now_ms(const struct hami_classic *h)
{
	return loop_now_ms(h->config.loop);
}

/* ---- what is known */

static int collect_pods(const struct hami_classic *h, struct sight *s, struct hm_err *e)
{
	const struct pod_view *v;
	size_t at = 0, count = 0;

	while (pods_next(h->config.pods, &at) != NULL)
		count++;
	s->pods = calloc(count + 1, sizeof *s->pods);
	if (s->pods == NULL)
		return hm_err_set(e, HM_ENOMEM, "this node's pods");
	at = 0;
	while ((v = pods_next(h->config.pods, &at)) != NULL)
		s->pods[s->facts.pod_count++] = v;
	s->facts.pods = s->pods;
	return 0;
}

/* A value that names nobody, or is none at all, is no reason to keep a pod from its cards. */
static void read_lock(struct hami_classic *h, struct sight *s)
{
	const struct node_view *node = node_object_view(h->config.node_object);
	const char *value = node != NULL ? node->annotations[NODE_LOCK] : NULL;
	struct hm_err e;

	if (value == NULL)
		return;
	if (node_lock_parse(value, &s->lock, &e) < 0)
		log_v(1, "the node's lock cannot be read; going by the pods alone", KV_ERR(&e));
	else if (s->lock.pod_name[0] != '\0')
		s->facts.lock = &s->lock;
	if (strcmp(value, h->lock) != 0) {
		hm_fmt(h->lock, sizeof h->lock, "%s", value);
		h->lock_ms = 0;
	}
	s->facts.lock_is_stale = h->lock_ms != 0 && now_ms(h) - h->lock_ms >= HAMI_CLASSIC_LOCK_WAIT_MS;
}

static int look(struct hami_classic *h, struct sight *s, struct hm_err *e)
{
	bool recent = now_ms(h) - h->last_ms <= HAMI_CLASSIC_SAME_POD_MS;
	struct hm_err why;

	*s = (struct sight) { .facts = { .node = h->config.node,
					 .resource = h->config.resource,
					 .alloc_dir = h->config.alloc_dir,
					 .claims = h->config.claims,
					 .call = h->call,
					 .call_count = h->call_count,
					 .last_uid = recent ? h->last_uid : "" } };
	if (checkpoint_cache_get(h->config.checkpoint, &s->facts.checkpoint, &why) < 0) {
		s->facts.checkpoint = NULL;
		log_v(1, "an Allocate without the kubelet's checkpoint; our claims stand for it", KV_ERR(&why));
	}
	read_lock(h, s);
	return collect_pods(h, s, e);
}

static void sight_fini(struct sight *s)
{
	free(s->pods);
}

/* ---- Allocate */

/* The kubelet rejects the pod for good: told as HAMi's plugin tells it. */
static int refuse(struct hami_classic *h, const struct pod_view *v, struct hm_err *e)
{
	const struct cluster_pod pod = { v->name_space, v->name, v->uid };

	cluster_tell_pod(h->config.cluster, &pod, "Warning", "GPUAllocationRefused", "%s", e->msg);
	pod_finish_failure(h->config.finish, v->uid);
	e->code = HM_EINVAL;
	return -HM_EINVAL;
}

static int no_pod(struct hami_classic *h, const struct pod_guess *g, struct hm_err *e)
{
	if (e->code != HM_EAGAIN)
		return g->pod != NULL ? refuse(h, g->pod, e) : -e->code;
	if (h->lock[0] != '\0' && h->lock_ms == 0)
		h->lock_ms = now_ms(h);
	if (!pods_synced(h->config.pods))
		return hm_err_wrap(e, "the API server has not told this node's pods yet");
	return -e->code;
}

static void note_answer(struct hami_classic *h, const struct sight *s, const struct pod_guess *g)
{
	bool locked = s->facts.lock != NULL && strcmp(s->lock.pod_name, g->pod->name) == 0 &&
		      strcmp(s->lock.pod_namespace, g->pod->name_space) == 0;

	h->stats.by_lock += locked;
	h->stats.again += g->number != 0;
	h->stats.by_order += g->rivals > 0;
	hm_fmt(h->last_uid, sizeof h->last_uid, "%s", g->pod->uid);
	h->last_ms = now_ms(h);
	if (g->rivals > 0)
		log_info("another pod may have been meant: the one bound first is answered", KV("pod", g->pod->name),
			 KV("namespace", g->pod->name_space), KV_U64("others", g->rivals));
}

/* An answer's environment loses to the pod's: NVIDIA's runtime shows it whatever cards it names. libvgpu refuses those
 * that are not in the limit file. */
static void note_visible(struct hami_classic *h, const struct pod_guess *g)
{
	const struct cluster_pod pod = { g->pod->name_space, g->pod->name, g->pod->uid };

	if (!g->container->visible_devices)
		return;
	h->stats.own_visible++;
	cluster_tell_pod(h->config.cluster, &pod, "Warning", "GPUVisibilityNotKept",
			 "container %s sets " HM_ENV_VISIBLE_DEVICES " itself, which wins with classic binding: it may "
			 "see other cards than its own; it gets no memory on them",
			 g->container->name);
}

static int claim_of(struct hami_classic *h, const struct sight *s, const struct pod_guess *g, const char *const *ids,
		    size_t count, uint64_t number, const struct inventory *cards, struct claim *out, struct hm_err *e)
{
	struct prestart_target target = { .number = g->number != 0 ? g->number : number, .classic = true };
	const struct claim *old = claims_find(h->config.claims, target.number);
	int r;

	hm_fmt(target.pod_uid, sizeof target.pod_uid, "%s", g->pod->uid);
	hm_fmt(target.container, sizeof target.container, "%s", g->container->name);
	r = hami_late_start(h->config.late, &target, ids, count, NULL, cards, out, e);
	/* A card that is not there; waiting would hold up every pod of the node. A MIG device is being made. */
	if (r == -HM_EAGAIN && !hami_late_is_mig(h->config.late))
		return refuse(h, g->pod, e);
	if (r < 0)
		return r;
	out->cdi[0] = '\0';
	if (old != NULL)
		out->state = old->state; /* it may run */
	note_answer(h, s, g);
	note_visible(h, g);
	return 0;
}

void hami_classic_call(struct hami_classic *h)
{
	h->call_count = 0;
}

int hami_classic_claim(struct hami_classic *h, const char *const *ids, size_t count, uint64_t number,
		       const struct inventory *cards, struct claim *out, struct hm_err *e)
{
	struct sight s;
	struct pod_guess g;
	int r;

	if (h->call_count == HAMI_CLASSIC_CALL_MAX)
		return hm_err_set(e, HM_ELIMIT, "more than %d containers in one Allocate call", HAMI_CLASSIC_CALL_MAX);
	r = look(h, &s, e);
	if (r == 0 && pod_guess_find(&s.facts, ids, count, &g, e) < 0)
		r = no_pod(h, &g, e);
	else if (r == 0)
		r = claim_of(h, &s, &g, ids, count, number, cards, out, e);
	if (r == 0)
		h->call[h->call_count++] = out->number;
	sight_fini(&s);
	return r;
}

void hami_classic_answered(struct hami_classic *h, const struct claim *c, bool ok)
{
	h->stats.answers += ok;
	if (!ok && pods_find(h->config.pods, c->pod_uid) != NULL)
		pod_finish_failure(h->config.finish, c->pod_uid);
	if (ok) {
		h->looks = 0;
		loop_timer_arm(h->look, HAMI_CLASSIC_LOOK_MS);
	}
}

/* The scheduler is told when the kubelet has all answers of a pod, which is not the pod that we thought of for certain.
 * The kubelet writes its checkpoint within a moment; what it does not write by then a container's start tells. */
static void on_look(void *arg)
{
	struct hami_classic *h = arg;
	struct sight s;
	struct hm_err e;
	size_t waiting = 0;

	if (look(h, &s, &e) == 0)
		for (size_t i = 0; i < s.facts.pod_count; i++) {
			const struct pod_view *v = s.facts.pods[i];

			if (v->terminal || v->trouble != NULL ||
			    strcmp(pod_view_text(v, POD_BIND_PHASE), HAMI_PHASE_ALLOCATING) != 0)
				continue;
			if (!v->others_wait && pod_guess_is_through(&s.facts, v))
				pod_finish_success(h->config.finish, v->uid);
			else
				waiting++;
		}
	sight_fini(&s);
	if (waiting > 0 && ++h->looks < HAMI_CLASSIC_LOOKS)
		loop_timer_arm(h->look, (uint64_t)HAMI_CLASSIC_LOOK_MS << h->looks);
}

/* ---- PreStart */

static bool has_card(const struct claim *c, const struct claim_card *card)
{
	for (size_t i = 0; i < c->card_count; i++)
		if (strcmp(c->cards[i].uuid, card->uuid) == 0 && strcmp(c->cards[i].mig, card->mig) == 0)
			return true;
	return false;
}

static bool same_cards(const struct claim *a, const struct claim *b)
{
	bool same = a->card_count == b->card_count;

	for (size_t i = 0; same && i < a->card_count; i++)
		same = has_card(b, &a->cards[i]);
	return same;
}

/* The answer was made for `old`, and cannot be taken back. */
static int misplaced(struct hami_classic *h, const struct claim *old, const struct claim *is, struct hm_err *e)
{
	h->stats.misplaced++;
	return hm_err_set(e, HM_EAGAIN,
			  "this container was given the %s %s of pod %s/%s, container %s; the scheduler chose %s for "
			  "it: delete the pod, and it is placed again",
			  old->uncontrolled == is->uncontrolled ? "card" : "answer",
			  old->card_count > 0 ? old->cards[0].uuid : "", old->pod_namespace, old->pod_name,
			  old->container, is->card_count > 0 ? is->cards[0].uuid : "none");
}

int hami_classic_start(struct hami_classic *h, const struct prestart_target *target, const char *const *ids,
		       size_t count, const struct claim *old, const struct inventory *cards, struct claim *out,
		       struct hm_err *e)
{
	bool moved = old != NULL &&
		     (strcmp(old->pod_uid, target->pod_uid) != 0 || strcmp(old->container, target->container) != 0);
	int r = hami_late_start(h->config.late, target, ids, count, moved ? NULL : old, cards, out, e);

	if (r < 0)
		return r;
	if (old != NULL && (!same_cards(old, out) || old->uncontrolled != out->uncontrolled)) {
		r = misplaced(h, old, out, e);
		claim_fini(out);
		return r;
	}
	if (moved) {
		h->stats.moved++;
		log_info("an Allocate was answered for another container with the same cards; the limits are its own "
			 "now",
			 KV_U64("number", target->number), KV("was_for", old->pod_name), KV("pod", out->pod_name),
			 KV("container", out->container));
	}
	return 0;
}

/* ---- life */

int hami_classic_new(const struct hami_classic_config *config, struct hami_classic **out, struct hm_err *e)
{
	hm_auto(hami_classic) *h = calloc(1, sizeof *h);

	if (h == NULL)
		return hm_err_set(e, HM_ENOMEM, "classic binding");
	h->config = *config;
	if (loop_timer_new(config->loop, on_look, h, &h->look, e) < 0)
		return hm_err_wrap(e, "classic binding");
	*out = HM_STEAL(h);
	return 0;
}

void hami_classic_free(struct hami_classic *h)
{
	if (h == NULL)
		return;
	loop_timer_free(h->look);
	free(h);
}

void hami_classic_stats(const struct hami_classic *h, struct hami_classic_stats *out)
{
	*out = h->stats;
}
