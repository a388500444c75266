#include "agent/cluster/pod_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "core/fmt.h"

struct named { /* a claim whose pod has a name */
	uint64_t number;
	unsigned lists_without; /* in a row */
	bool was_listed;        /* by the kubelet that runs now */
	bool was_booked;        /* by it too: with devices of the claim */
};

struct pod_names {
	struct loop *loop;
	const char *socket, *resource;
	struct claims *claims;
	struct loop_timer *timer;
	struct pod_resources_call *call;
	bool again; /* a container started while a list was on its way */
	struct named *named;
	size_t named_count, named_cap;
	uint64_t empty_since_ms; /* 0: the last list was not empty */
	bool asked, answered;    /* a list was told or failed; one was told */
};

static void set_name(struct claims *claims, const struct claim *c, const char *pod_namespace, const char *pod,
		     const char *container)
{
	struct hm_err e;
	struct claim named;
	int r;

	if (claim_copy(c, &named, &e) < 0)
		return;
	hm_fmt(named.pod_namespace, sizeof named.pod_namespace, "%s", pod_namespace);
	hm_fmt(named.pod_name, sizeof named.pod_name, "%s", pod);
	if (named.container[0] == '\0')
		hm_fmt(named.container, sizeof named.container, "%s", container);
	r = claims_put(claims, &named, &e);
	claim_fini(&named);
	if (r < 0)
		log_v(1, "a pod's name is not recorded", KV_ERR(&e));
}

static void from_list(struct claims *claims, const struct claim *c, const struct pod_resources_container *containers,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct pod_resources_container *at = &containers[i];

		if (!claim_has_set(c, at->ids, at->id_count) ||
		    (c->container[0] != '\0' && strcmp(c->container, at->container) != 0))
			continue;
		set_name(claims, c, at->pod_namespace, at->pod, at->container);
		return;
	}
}

static void from_sibling(struct claims *claims, const struct claim *c)
{
	for (size_t i = 0; c->pod_uid[0] != '\0' && i < claims_count(claims); i++) {
		const struct claim *other = claims_at(claims, i);

		if (other->pod_name[0] == '\0' || strcmp(other->pod_uid, c->pod_uid) != 0)
			continue;
		set_name(claims, c, other->pod_namespace, other->pod_name, c->container);
		return;
	}
}

void pod_names_apply(struct claims *claims, const struct pod_resources_container *containers, size_t count)
{
	/* claims_put of a number that exists keeps the order and the count. */
	for (size_t i = 0; i < claims_count(claims); i++)
		if (claims_at(claims, i)->pod_name[0] == '\0')
			from_list(claims, claims_at(claims, i), containers, count);
	for (size_t i = 0; i < claims_count(claims); i++)
		if (claims_at(claims, i)->pod_name[0] == '\0')
			from_sibling(claims, claims_at(claims, i));
}

/* ---- pods that left the list */

static bool is_listed(const struct claim *c, const struct pod_resources_container *containers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(c->pod_name, containers[i].pod) == 0 &&
		    strcmp(c->pod_namespace, containers[i].pod_namespace) == 0)
			return true;
	return false;
}

static bool is_booked(const struct claim *c, const struct pod_resources_container *containers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; is_listed(c, &containers[i], 1) && k < containers[i].id_count; k++)
			if (claim_has_device(c, containers[i].ids[k]))
				return true;
	return false;
}

static size_t count_holding(const struct pod_resources_container *containers, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += containers[i].id_count > 0;
	return n;
}

static struct named state_of(const struct pod_names *n, uint64_t number)
{
	for (size_t i = 0; i < n->named_count; i++)
		if (n->named[i].number == number)
			return n->named[i];
	return (struct named) { .number = number };
}

static bool is_new(const struct claim *c, const struct named *state)
{
	return !state->was_listed && clock_wall_ms() - c->created_ms < POD_NAMES_NEW_MS;
}

/* A kubelet that started while the API server is away lists nobody, for as long as that lasts. */
static bool is_credible(const struct pod_names *n, const struct named *state, uint64_t now_ms)
{
	return n->empty_since_ms == 0 || state->was_listed || now_ms - n->empty_since_ms >= POD_NAMES_EMPTY_MS;
}

static void count_missing(struct pod_names *n, const struct pod_resources_container *containers, size_t count,
			  uint64_t now_ms)
{
	struct pod_names next = { 0 };

	for (size_t i = 0; i < claims_count(n->claims); i++) {
		const struct claim *c = claims_at(n->claims, i);
		struct named state = state_of(n, c->number);

		if (c->pod_name[0] == '\0')
			continue;
		if (is_listed(c, containers, count))
			state = (struct named) { c->number, 0, true,
						 state.was_booked || is_booked(c, containers, count) };
		else if (is_credible(n, &state, now_ms) && !is_new(c, &state))
			state.lists_without++;
		if (!HM_PUSH(next.named, next.named_count, next.named_cap, state))
			break;
	}
	free(n->named);
	n->named = next.named;
	n->named_count = next.named_count;
	n->named_cap = next.named_cap;
}

void pod_names_take(struct pod_names *n, const struct pod_resources_container *containers, size_t count,
		    uint64_t now_ms)
{
	pod_names_apply(n->claims, containers, count);
	n->asked = n->answered = true;
	if (count_holding(containers, count) > 0)
		n->empty_since_ms = 0;
	else if (n->empty_since_ms == 0)
		n->empty_since_ms = HM_MAX(now_ms, (uint64_t)1);
	count_missing(n, containers, count, now_ms);
}

bool pod_names_is_gone(const struct pod_names *n, uint64_t number)
{
	return state_of(n, number).lists_without >= POD_NAMES_GONE_AFTER;
}

enum pod_life pod_names_life(struct pod_names *n, const struct claim *c)
{
	const struct named state = state_of(n, c->number);

	if (!n->asked || (n->answered && c->pod_name[0] != '\0'))
		pod_names_want(n);
	if (!n->asked)
		return POD_LIVES;
	if (!n->answered || c->pod_name[0] == '\0')
		return POD_UNSEEN;
	return state.was_booked || state.lists_without >= POD_NAMES_GONE_AFTER ? POD_IS_GONE : POD_LIVES;
}

static void ask_later(struct pod_names *n)
{
	if (n->again)
		loop_timer_arm(n->timer, POD_NAMES_AFTER_MS);
	else if (claims_count(n->claims) > 0)
		loop_timer_arm(n->timer, POD_NAMES_EVERY_MS);
	n->again = false;
}

void pod_names_new_kubelet(struct pod_names *n)
{
	pod_resources_free(HM_STEAL(n->call)); /* the former one's */
	ask_later(n);
	n->named_count = 0;
	n->empty_since_ms = 0;
}

/* ---- asking */

static void on_list(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e)
{
	struct pod_names *n = arg;

	n->asked = true;
	if (e == NULL) {
		pod_names_take(n, containers, count, loop_now_ms(n->loop));
	} else {
		log_v(1, "the kubelet does not list its pods", KV_ERR(e));
	}
	pod_resources_free(HM_STEAL(n->call));
	ask_later(n);
}

static void on_timer(void *arg)
{
	struct pod_names *n = arg;
	struct hm_err e;

	if (n->call != NULL)
		return;
	if (pod_resources_list(n->loop, n->socket, n->resource, on_list, n, &n->call, &e) < 0) {
		log_v(1, "the kubelet does not list its pods", KV_ERR(&e));
		ask_later(n);
	}
}

int pod_names_new(struct loop *l, const char *socket, const char *resource, struct claims *claims,
		  struct pod_names **out, struct hm_err *e)
{
	struct pod_names *n = calloc(1, sizeof *n);

	if (n == NULL)
		return hm_err_set(e, HM_ENOMEM, "pod names");
	*n = (struct pod_names) { .loop = l, .socket = socket, .resource = resource, .claims = claims };
	if (loop_timer_new(l, on_timer, n, &n->timer, e) < 0) {
		free(n);
		return hm_err_wrap(e, "pod names");
	}
	ask_later(n);
	*out = n;
	return 0;
}

void pod_names_free(struct pod_names *n)
{
	if (n == NULL)
		return;
	pod_resources_free(n->call);
	loop_timer_free(n->timer);
	free(n->named);
	free(n);
}

void pod_names_want(struct pod_names *n)
{
	n->again = n->call != NULL;
	if (n->call == NULL)
		loop_timer_arm(n->timer, POD_NAMES_AFTER_MS);
}
