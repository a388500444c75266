#include "agent/cluster/publish.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "core/fmt.h"

struct publish {
	struct loop *loop;
	struct publish_config config;
	struct node_listener listener;
	struct loop_timer *timer;
	struct node_patch_call *patching;
	struct publish_texts sent; /* of the patch under way, or the last that was taken */
	bool taken;                /* the API server has had `sent` */
	bool started, changed;     /* changed: while a patch was under way */
	uint64_t not_before_ms;    /* the next pass */
	char uid[64];              /* of the Node last seen; "": none is there */
	void (*paused)(void *arg); /* to be called; NULL: was, or is not wanted */
	void *paused_arg;
	bool failing; /* said in the log */
	bool healing; /* the patch under way */
	uint64_t good_ms;
	struct publish_stats stats;
};

/* What each text is written to; NODE_HANDSHAKE and NODE_LOCK are not ours to write here. */
static const char *const keys[NODE_ANNOTATION_COUNT] = {
	[NODE_REGISTER] = HAMI_NODE_REGISTER,
	[NODE_SCORE] = HAMI_NODE_SCORE,
	[NODE_HEALTH] = HAMI_NODE_HEALTH,
};

static void texts_fini(struct publish_texts *t)
{
	for (size_t i = 0; i < HM_COUNT(t->texts); i++)
		str_fini(&t->texts[i]);
}

static void arm(struct publish *p, uint64_t after_ms)
{
	uint64_t now = loop_now_ms(p->loop);

	loop_timer_arm(p->timer, HM_MAX(after_ms, p->not_before_ms > now ? p->not_before_ms - now : 0));
}

/* ---- the end of a pass */

static void end_well(struct publish *p)
{
	p->stats.passes++;
	p->stats.good = true;
	p->good_ms = loop_now_ms(p->loop);
	if (p->failing)
		log_info("the Node's annotations are as they should be again");
	p->failing = false;
	arm(p, PUBLISH_EACH_MS);
}

static void end_badly(struct publish *p, const struct hm_err *e, uint32_t wait_ms)
{
	p->stats.passes++;
	p->stats.failures++;
	if (!p->failing)
		log_warn("cannot publish our cards to the scheduler; what it knows of them may be old", KV_ERR(e));
	else
		log_v(2, "cannot publish our cards", KV_ERR(e));
	p->failing = true;
	p->not_before_ms = loop_now_ms(p->loop) + HM_MAX(wait_ms, (uint32_t)PUBLISH_RETRY_MS);
	arm(p, 0);
}

/* ---- a pass */

static bool is_ours(size_t annotation, const struct publish_texts *t)
{
	return keys[annotation] != NULL && t->texts[annotation].n > 0;
}

static bool differs(const struct publish_texts *t, size_t annotation, const char *live)
{
	return is_ours(annotation, t) && (live == NULL || strcmp(live, str_text(&t->texts[annotation])) != 0);
}

static bool is_what_we_sent(const struct publish *p, const struct publish_texts *t)
{
	for (size_t i = 0; i < NODE_ANNOTATION_COUNT; i++)
		if (strcmp(str_text(&p->sent.texts[i]), str_text(&t->texts[i])) != 0)
			return false;
	return p->taken;
}

static void on_patched(void *arg, const struct kube_answer *a)
{
	struct publish *p = arg;

	p->patching = NULL;
	p->taken = a->status.outcome == KUBE_DONE;
	if (p->taken) {
		p->stats.writes++;
		p->stats.healed += p->healing;
		log_v(1, "the Node's annotations are written");
		end_well(p);
	} else {
		end_badly(p, &a->err, a->retry_after_ms);
		/* It may be another Node by now, or none. */
		if (a->status.outcome == KUBE_CONFLICT || a->status.outcome == KUBE_NOT_FOUND)
			node_object_refresh(p->config.node);
	}
	if (p->stats.paused)
		loop_timer_arm(p->timer, 0);
	else if (p->changed)
		arm(p, 0);
	p->changed = false;
}

/* `texts` moves in. */
static int patch(struct publish *p, struct publish_texts *texts, const struct node_view *view, struct hm_err *e)
{
	struct kube_patch_value values[NODE_ANNOTATION_COUNT];
	struct node_patch request = { .annotations = values, .done = on_patched, .arg = p };
	uint64_t now = loop_now_ms(p->loop);

	for (size_t i = 0; i < NODE_ANNOTATION_COUNT; i++)
		if (differs(texts, i, view->annotations[i]))
			values[request.count++] = (struct kube_patch_value) { keys[i], str_text(&texts->texts[i]) };
	if (node_object_patch(p->config.node, &request, &p->patching, e) < 0)
		return -e->code;
	p->healing = is_what_we_sent(p, texts);
	if (p->healing) {
		p->not_before_ms = now + PUBLISH_RETRY_MS;
		log_info("somebody else changed our annotations on the Node, or it is a new one; written again");
	}
	texts_fini(&p->sent);
	p->sent = *texts;
	*texts = (struct publish_texts) { 0 };
	p->taken = false;
	return 0;
}

static bool is_heard_of(const struct publish *p)
{
	struct node_object_stats stats;

	node_object_stats(p->config.node, &stats);
	return stats.heard_ms != 0;
}

/* What comes of a pass, besides a negative code. */
enum { SAME, PATCHING, WAITING };

static int pass(struct publish *p, struct publish_texts *texts, struct hm_err *e)
{
	const struct node_view *view = node_object_view(p->config.node);
	bool same = true;

	if (p->config.texts(p->config.arg, texts, e) < 0)
		return -e->code;
	for (size_t i = 0; i < NODE_ANNOTATION_COUNT; i++) {
		if (str_failed(&texts->texts[i]))
			return hm_err_set(e, HM_ENOMEM, "the Node's annotations");
		same = same && (view == NULL || !differs(texts, i, view->annotations[i]));
	}
	if (view == NULL && is_heard_of(p))
		return hm_err_set(e, HM_EAGAIN, "our Node does not exist; is NODE_NAME right?");
	if (view == NULL)
		return WAITING; /* for the API server: the Node's reflector says so where that takes long */
	if (same)
		return SAME;
	return patch(p, texts, view, e) < 0 ? -e->code : PATCHING;
}

static void on_timer(void *arg)
{
	struct publish *p = arg;
	void (*paused)(void *) = p->paused;
	struct publish_texts texts = { 0 };
	struct hm_err e;
	int r;

	if (p->patching != NULL)
		return; /* its end arms the timer */
	if (p->stats.paused) {
		p->paused = NULL;
		if (paused != NULL)
			paused(p->paused_arg);
		return;
	}
	r = pass(p, &texts, &e);
	texts_fini(&texts);
	if (r < 0)
		end_badly(p, &e, 0);
	else if (r == SAME)
		end_well(p);
	else if (r == WAITING)
		arm(p, PUBLISH_RETRY_MS);
}

static void pass_soon(struct publish *p)
{
	if (p->patching != NULL)
		p->changed = true;
	else if (p->started && !p->stats.paused)
		arm(p, 0);
}

void publish_now(struct publish *p)
{
	p->started = true;
	if (!p->failing) /* our own change need not wait for what others do to the annotations */
		p->not_before_ms = 0;
	pass_soon(p);
}

static void on_node(void *arg, const struct node_view *view)
{
	struct publish *p = arg;
	const char *uid = view != NULL ? view->uid : "";

	if (strncmp(p->uid, uid, sizeof p->uid - 1) != 0)
		p->not_before_ms = 0; /* what failed was about another one */
	hm_fmt(p->uid, sizeof p->uid, "%s", uid);
	pass_soon(p);
}

/* ---- pausing */

void publish_pause(struct publish *p, void (*paused)(void *arg), void *arg)
{
	p->stats.paused = true;
	p->paused = paused;
	p->paused_arg = arg;
	if (p->patching == NULL)
		loop_timer_arm(p->timer, 0);
}

void publish_resume(struct publish *p)
{
	p->stats.paused = false;
	p->paused = NULL;
	loop_timer_disarm(p->timer);
	pass_soon(p);
}

/* ---- life */

int publish_new(struct loop *l, const struct publish_config *config, struct publish **out, struct hm_err *e)
{
	hm_auto(publish) *p = calloc(1, sizeof *p);

	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "publish");
	p->loop = l;
	p->config = *config;
	p->listener = (struct node_listener) { .changed = on_node, .arg = p };
	node_object_listen(config->node, &p->listener);
	if (loop_timer_new(l, on_timer, p, &p->timer, e) < 0)
		return hm_err_wrap(e, "publish");
	*out = HM_STEAL(p);
	return 0;
}

void publish_free(struct publish *p)
{
	if (p == NULL)
		return;
	node_patch_cancel(p->patching);
	link_remove(&p->listener.link);
	loop_timer_free(p->timer);
	texts_fini(&p->sent);
	free(p);
}

void publish_stats(const struct publish *p, struct publish_stats *out)
{
	*out = p->stats;
	out->good_age_ms = p->stats.good ? loop_now_ms(p->loop) - p->good_ms : 0;
}
