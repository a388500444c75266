#include "agent/pod_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/fmt.h"

struct pod_names {
	struct loop *loop;
	const char *socket, *resource;
	struct claims *claims;
	struct loop_timer *timer;
	struct pod_resources_call *call;
	unsigned tries_left;
};

static bool set_name(struct claims *claims, const struct claim *c, const char *pod_namespace, const char *pod,
		     const char *container)
{
	struct hm_err e;
	struct claim named;
	int r;

	if (claim_copy(c, &named, &e) < 0)
		return false;
	hm_fmt(named.pod_namespace, sizeof named.pod_namespace, "%s", pod_namespace);
	hm_fmt(named.pod_name, sizeof named.pod_name, "%s", pod);
	if (named.container[0] == '\0')
		hm_fmt(named.container, sizeof named.container, "%s", container);
	r = claims_put(claims, &named, &e);
	claim_fini(&named);
	if (r < 0)
		log_v(1, "a pod's name is not recorded", KV_ERR(&e));
	return r == 0;
}

static bool from_list(struct claims *claims, const struct claim *c, const struct pod_resources_container *containers,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct pod_resources_container *at = &containers[i];

		if (claim_has_set(c, at->ids, at->id_count) &&
		    (c->container[0] == '\0' || strcmp(c->container, at->container) == 0))
			return set_name(claims, c, at->pod_namespace, at->pod, at->container);
	}
	return false;
}

static bool from_sibling(struct claims *claims, const struct claim *c)
{
	for (size_t i = 0; c->pod_uid[0] != '\0' && i < claims_count(claims); i++) {
		const struct claim *other = claims_at(claims, i);

		if (other->pod_name[0] != '\0' && strcmp(other->pod_uid, c->pod_uid) == 0)
			return set_name(claims, c, other->pod_namespace, other->pod_name, c->container);
	}
	return false;
}

size_t pod_names_apply(struct claims *claims, const struct pod_resources_container *containers, size_t count)
{
	size_t missing = 0;

	/* claims_put of a number that exists keeps the order and the count. */
	for (size_t i = 0; i < claims_count(claims); i++)
		if (claims_at(claims, i)->pod_name[0] == '\0')
			from_list(claims, claims_at(claims, i), containers, count);
	for (size_t i = 0; i < claims_count(claims); i++)
		if (claims_at(claims, i)->pod_name[0] == '\0' && !from_sibling(claims, claims_at(claims, i)))
			missing++;
	return missing;
}

static void on_list(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e)
{
	struct pod_names *n = arg;
	size_t missing = 1;

	if (e == NULL)
		missing = pod_names_apply(n->claims, containers, count);
	else
		log_v(1, "pod names cannot be looked up", KV_ERR(e));
	pod_resources_free(HM_STEAL(n->call));
	if (missing > 0 && n->tries_left > 0)
		loop_timer_arm(n->timer, POD_NAMES_RETRY_MS);
}

static void on_timer(void *arg)
{
	struct pod_names *n = arg;
	struct hm_err e;

	if (n->call != NULL || n->tries_left == 0)
		return;
	n->tries_left--;
	if (pod_resources_list(n->loop, n->socket, n->resource, on_list, n, &n->call, &e) < 0) {
		log_v(1, "pod names cannot be looked up", KV_ERR(&e));
		if (n->tries_left > 0)
			loop_timer_arm(n->timer, POD_NAMES_RETRY_MS);
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
	*out = n;
	return 0;
}

void pod_names_free(struct pod_names *n)
{
	if (n == NULL)
		return;
	pod_resources_free(n->call);
	loop_timer_free(n->timer);
	free(n);
}

void pod_names_want(struct pod_names *n)
{
	n->tries_left = POD_NAMES_TRIES;
	if (n->call == NULL)
		loop_timer_arm(n->timer, POD_NAMES_AFTER_MS);
}
