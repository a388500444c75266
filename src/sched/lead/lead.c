#include "sched/lead/lead.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/utc.h"
#include "core/fmt.h"
#include "kube/backoff.h"
#include "kube/reflector.h"
#include "kube/url.h"

struct lead {
	struct loop *loop;
	struct lead_config config;
	char *name_space, *lease;
	struct election election;
	struct kube_reflector *reflector; /* LEAD_FOLLOW */
	struct loop_timer *turn;          /* the next question */
	struct loop_timer *limit;         /* the end of what we lead */
	struct kube_call *call;
	enum election_step step; /* what the call is for */
	uint64_t sent_ms;
	bool told; /* what the owner knows */
	bool releasing;
	void (*released)(void *arg);
	void *released_arg;
	uint64_t gained, lost, failures;
	struct hm_err last;
};

static uint64_t now_ms(const struct lead *l)
{
	return loop_now_ms(l->loop);
}

bool lead_is_ours(const struct lead *l)
{
	return l->config.mode == LEAD_ALWAYS ? l->told : election_leads(&l->election, now_ms(l));
}

uint64_t lead_alone_ms(const struct lead *l)
{
	return l->config.mode == LEAD_ALWAYS ? UINT64_MAX : election_alone_ms(&l->election, now_ms(l));
}

/* ---- telling */

static void tell(struct lead *l, bool leads)
{
	if (leads == l->told)
		return;
	l->told = leads;
	l->gained += leads;
	l->lost += !leads;
	log_info(leads ? "we lead" : "we do not lead any more", KV("holder", l->election.seen.holder));
	l->config.changed(l->config.arg, leads);
}

/* The owner hears of it, and the limit is watched. Last in each callback. */
static void settle(struct lead *l)
{
	uint64_t now = now_ms(l);

	if (now < l->election.from_ms)
		loop_timer_arm(l->limit, l->election.from_ms - now);
	else if (election_leads(&l->election, now))
		loop_timer_arm(l->limit, l->election.until_ms - now);
	tell(l, election_leads(&l->election, now));
}

static void on_limit(void *arg)
{
	settle(arg);
}

static void note_failure(struct lead *l, const struct hm_err *e)
{
	l->failures++;
	if (l->last.code == 0 || strcmp(l->last.msg, e->msg) != 0)
		log_warn("the Lease", KV("name", l->lease), KV_ERR(e));
	l->last = *e;
}

/* ---- our own Lease */

static uint32_t with_jitter(uint32_t ms)
{
	return ms + kube_random() % (ms / 5 + 1);
}

static int read_answer(const struct kube_answer *a, struct kube_lease *out, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;

	if (json_parse(a->body, a->n, &tree, e) < 0 || kube_lease_read(tree, out, e) < 0)
		return -e->code;
	return 0;
}

static void finish_release(struct lead *l)
{
	void (*released)(void *arg) = l->released;

	l->released = NULL;
	loop_timer_disarm(l->turn);
	if (released != NULL)
		released(l->released_arg);
}

/* Whether the next question comes at once. After a conflict it waits as ever: two who try are so parted. */
static bool take_answer(struct lead *l, const struct kube_answer *a)
{
	struct kube_lease lease;
	struct hm_err e = { 0 };

	switch (a->status.outcome) {
	case KUBE_DONE: break;
	case KUBE_NOT_FOUND: election_see(&l->election, NULL, now_ms(l)); return l->step == ELECTION_READ;
	case KUBE_CONFLICT:
	case KUBE_EXISTS: election_conflict(&l->election); return false;
	default: note_failure(l, &a->err); return false;
	}
	if (read_answer(a, &lease, &e) < 0) {
		hm_err_wrap(&e, "what the API server answered");
		note_failure(l, &e);
		election_conflict(&l->election);
		return false;
	}
	l->last = (struct hm_err) { 0 };
	if (l->step == ELECTION_READ)
		election_see(&l->election, &lease, now_ms(l));
	else
		election_won(&l->election, &lease, l->sent_ms);
	return l->step == ELECTION_READ && election_next(&l->election, now_ms(l)) != ELECTION_WAIT;
}

static void on_answer(void *arg, const struct kube_answer *a)
{
	struct lead *l = arg;
	bool at_once;

	l->call = NULL;
	if (l->releasing) {
		finish_release(l);
		return;
	}
	at_once = take_answer(l, a);
	loop_timer_arm(l->turn, at_once ? 0 : with_jitter(l->config.rules.retry_ms));
	settle(l);
}

static int send(struct lead *l, enum kube_verb verb, const char *name, const struct str *body, struct hm_err *e)
{
	struct kube_events_of_call events = { .done = on_answer, .arg = l };
	struct kube_request request = { .verb = verb, .timeout_ms = l->config.rules.renew_ms / 2, .tries = 1 };
	hm_auto_str path = { 0 };

	kube_url_add_path(&path, KUBE_LEASES, l->name_space, "leases", name);
	if (str_failed(&path))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	request.path = str_text(&path);
	if (body != NULL) {
		request.content_type = verb == KUBE_PATCH ? KUBE_MERGE_PATCH : KUBE_JSON;
		request.body = str_text(body);
		request.n = body->n;
	}
	return kube_client_call(l->config.client, &request, &events, &l->call, e);
}

static int send_step(struct lead *l, struct hm_err *e)
{
	struct kube_lease_write w;
	hm_auto_str body = { 0 };

	if (l->step == ELECTION_READ)
		return send(l, KUBE_GET, l->lease, NULL, e);
	election_write(&l->election, l->step, clock_wall_ms(), &w);
	if (l->step == ELECTION_MAKE)
		return kube_lease_text(&w, l->lease, &body, e) < 0 ? -e->code : send(l, KUBE_POST, NULL, &body, e);
	if (kube_lease_patch(&w, l->election.seen.resource_version, &body, e) < 0)
		return -e->code;
	return send(l, KUBE_PATCH, l->lease, &body, e);
}

/* Another's Lease is read again and again: whether it is renewed is all that counts. */
static void ask(struct lead *l)
{
	struct hm_err e = { 0 };

	l->step = election_next(&l->election, now_ms(l));
	if (l->step == ELECTION_WAIT)
		l->step = ELECTION_READ;
	l->sent_ms = now_ms(l);
	if (send_step(l, &e) < 0)
		note_failure(l, &e);
	loop_timer_arm(l->turn, with_jitter(l->config.rules.retry_ms));
}

static void on_turn(void *arg)
{
	struct lead *l = arg;

	if (l->releasing) {
		kube_call_cancel(HM_STEAL(l->call));
		finish_release(l);
		return;
	}
	if (l->call != NULL && now_ms(l) - l->sent_ms < l->config.rules.renew_ms / 2) {
		loop_timer_arm(l->turn, l->config.rules.retry_ms);
		return;
	}
	/* Throttled, or silence: it may have been done, so the version is to be read. */
	if (l->call != NULL)
		election_conflict(&l->election);
	kube_call_cancel(HM_STEAL(l->call));
	if (l->config.mode == LEAD_ALWAYS)
		tell(l, true);
	else
		ask(l);
}

void lead_release(struct lead *l, void (*done)(void *arg), void *arg)
{
	bool ours = l->config.mode == LEAD_OWN_LEASE && l->election.known && lead_is_ours(l);
	struct kube_lease_write w;
	hm_auto_str body = { 0 };
	struct hm_err e = { 0 };

	l->releasing = true;
	l->released = done;
	l->released_arg = arg;
	kube_call_cancel(HM_STEAL(l->call));
	election_write_release(&l->election, clock_wall_ms(), &w);
	if (ours && (kube_lease_patch(&w, l->election.seen.resource_version, &body, &e) < 0 ||
		     send(l, KUBE_PATCH, l->lease, &body, &e) < 0))
		note_failure(l, &e);
	election_resign(&l->election);
	/* Nothing was sent: done comes from the loop all the same. */
	loop_timer_arm(l->turn, l->call != NULL ? l->config.rules.retry_ms : 0);
	loop_timer_arm(l->limit, 0);
}

/* ---- another program's */

/* On our loop's clock. */
static uint64_t renewed_ms(const struct lead *l)
{
	const char *text = l->election.seen.renewed;
	int64_t seconds, age_ms;
	unsigned ms;

	if (!utc_read(text, strlen(text), &seconds, &ms))
		return UINT64_MAX;
	age_ms = (int64_t)clock_wall_ms() - (seconds * 1000 + ms);
	if (age_ms <= 0)
		return UINT64_MAX;
	return now_ms(l) - HM_MIN((uint64_t)age_ms, now_ms(l));
}

static void on_lease(void *arg, const struct kube_object *o)
{
	struct lead *l = arg;
	struct kube_lease lease;
	struct hm_err e = { 0 };

	if (l->releasing)
		return;
	if (kube_lease_read(o->tree, &lease, &e) < 0) {
		note_failure(l, &e);
		return;
	}
	election_see(&l->election, &lease, now_ms(l));
	election_follow(&l->election, renewed_ms(l));
	settle(l);
}

static void on_no_lease(void *arg, const struct kube_object *o)
{
	struct lead *l = arg;

	(void)o;
	election_see(&l->election, NULL, now_ms(l));
	settle(l);
}

/* A list tells how the Lease is now, not what it was since the watch before ended. */
static void on_lists(void *arg)
{
	struct lead *l = arg;

	election_be_blind(&l->election, true);
}

static void on_listed(void *arg)
{
	struct lead *l = arg;

	election_be_blind(&l->election, false);
	if (!l->election.known)
		on_no_lease(l, NULL);
}

static int follow(struct lead *l, struct hm_err *e)
{
	struct kube_reflector_events events = {
		.changed = on_lease,
		.deleted = on_no_lease,
		.lists = on_lists,
		.listed = on_listed,
		.arg = l,
	};
	struct kube_reflector_options options = { 0 };
	hm_auto_str path = { 0 }, selector = { 0 };

	kube_url_add_path(&path, KUBE_LEASES, l->name_space, "leases", NULL);
	str_addf(&selector, "metadata.name=%s", l->lease);
	if (str_failed(&path) || str_failed(&selector))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	options.path = str_text(&path);
	options.field_selector = str_text(&selector);
	return kube_reflector_new(l->config.client, &options, &events, &l->reflector, e);
}

/* ---- life */

static int check(const struct lead_config *c, struct hm_err *e)
{
	if (c->mode == LEAD_ALWAYS)
		return 0;
	if (c->name_space == NULL || c->name_space[0] == '\0' || c->lease == NULL || c->lease[0] == '\0')
		return hm_err_set(e, HM_EINVAL, "leader election needs the Lease's name and namespace");
	if (c->host == NULL || c->host[0] == '\0')
		return hm_err_set(e, HM_EINVAL, "leader election needs a host name");
	return election_check_rules(&c->rules, e);
}

static int name_us(struct lead *l, struct hm_err *e)
{
	const struct lead_config *c = &l->config;
	hm_auto_str me = { 0 };

	l->name_space = strdup(c->name_space != NULL ? c->name_space : "");
	l->lease = strdup(c->lease != NULL ? c->lease : "");
	str_addf(&me, "%.200s_%08x%08x%08x%08x", c->host != NULL ? c->host : "", kube_random(), kube_random(),
		 kube_random(), kube_random());
	if (l->name_space == NULL || l->lease == NULL || str_failed(&me))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	if (c->mode == LEAD_FOLLOW)
		election_init_follow(&l->election, &c->rules, c->host);
	else
		election_init(&l->election, &c->rules, str_text(&me));
	l->config.name_space = l->config.lease = l->config.host = NULL; /* the copies are used */
	return 0;
}

int lead_new(struct loop *loop, const struct lead_config *config, struct lead **out, struct hm_err *e)
{
	hm_auto(lead) *l = NULL;

	if (check(config, e) < 0)
		return -HM_EINVAL;
	l = calloc(1, sizeof *l);
	if (l == NULL)
		return hm_err_set(e, HM_ENOMEM, "leader election");
	l->loop = loop;
	l->config = *config;
	if (name_us(l, e) < 0 || loop_timer_new(loop, on_turn, l, &l->turn, e) < 0 ||
	    loop_timer_new(loop, on_limit, l, &l->limit, e) < 0 || (config->mode == LEAD_FOLLOW && follow(l, e) < 0))
		return hm_err_wrap(e, "leader election");
	if (config->mode != LEAD_FOLLOW)
		loop_timer_arm(l->turn, 0);
	*out = HM_STEAL(l);
	return 0;
}

void lead_free(struct lead *l)
{
	if (l == NULL)
		return;
	kube_call_cancel(l->call);
	kube_reflector_free(l->reflector);
	loop_timer_free(l->turn);
	loop_timer_free(l->limit);
	free(l->name_space);
	free(l->lease);
	free(l);
}

void lead_stats(const struct lead *l, struct lead_stats *out)
{
	*out = (struct lead_stats) {
		lead_is_ours(l), l->election.seen.holder, l->gained, l->lost, l->failures, l->last
	};
}
