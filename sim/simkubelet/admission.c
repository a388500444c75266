#include <string.h>

#include "base/log.h"
#include "core/check.h"
#include "kubelet/pb.h"
#include "kubelet/proto/device_plugin.pb-c.h"
#include "sim/simkubelet/ids.h"
#include "sim/simkubelet/node.h"

/*
 * One pod at a time, and nothing else is admitted meanwhile: an Allocate that blocks stalls the kubelet's sync loop.
 * For each container, init containers first, and each of its resources:
 * 1. Take from what finished init containers of the pod had (reusable). Enough: no GetPreferredAllocation.
 * 2. Else GetPreferredAllocation, with the reused ids as "must include"; then what it says as far as it is free, then
 * any.
 * 3. Allocate. Its answer is kept. An error of either call fails the pod for good.
 * 4. Checkpoint.
 * What an init container got becomes reusable; what a sidecar or a main container got is so no longer.
 */
struct admission {
	struct node *node;
	struct pod *pod; /* in hand; NULL: none */
	size_t container, grant;
	struct ids chosen;    /* for the grant in hand */
	struct ids reusable;  /* "resource id" */
	struct ids available; /* what the plugin was asked to choose from; its health now does not count */
	struct ids preferred; /* the plugin's answer */
	struct rpc_request *call;
	bool answered;
	struct hm_err failure;
};

struct admission *admission_new(struct node *n)
{
	struct admission *a = node_alloc(1, sizeof *a);

	a->node = n;
	return a;
}

static void let_go(struct admission *a)
{
	a->pod = NULL;
	ids_clear(&a->chosen);
	ids_clear(&a->reusable);
	ids_clear(&a->available);
	ids_clear(&a->preferred);
}

void admission_free(struct admission *a)
{
	if (a == NULL)
		return;
	let_go(a);
	if (a->call != NULL)
		rpc_request_cancel(a->call);
	free(a);
}

void admission_forget(struct node *n, const struct pod *p)
{
	struct admission *a = n->admission;

	if (a->pod != p)
		return;
	let_go(a);
	if (a->call != NULL)
		rpc_request_cancel(a->call);
	node_sync(n);
}

static void grants_clear(struct pod *p)
{
	for (size_t i = 0; i < p->container_count; i++) {
		for (size_t k = 0; k < p->containers[i].grant_count; k++) {
			ids_clear(&p->containers[i].grants[k].ids);
			p->containers[i].grants[k].allocated = false;
			str_fini(&p->containers[i].grants[k].answer);
			str_fini(&p->containers[i].grants[k].device_ids);
		}
	}
}

void admission_abort(struct node *n)
{
	struct pod *p = n->admission->pod;

	if (p == NULL)
		return;
	grants_clear(p);
	p->admitted = false;
	admission_forget(n, p);
}

/* ---- who holds what ---- */

static bool is_over(const struct pod *p)
{
	return p->deleted || p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

static bool in_use(const struct node *n, const char *resource, const char *id)
{
	LIST_FOR_EACH (&n->pods, it) {
		const struct pod *p = HM_CONTAINER(it, struct pod, link);

		for (size_t i = 0; !is_over(p) && i < p->container_count; i++) {
			const struct container *c = &p->containers[i];

			for (size_t k = 0; k < c->grant_count; k++) {
				if (strcmp(c->grants[k].resource, resource) == 0 && ids_has(&c->grants[k].ids, id))
					return true;
			}
		}
	}
	return false;
}

/* What is over is forgotten at the next allocation, not before: until then the checkpoint has it. */
static void purge(struct node *n)
{
	LIST_FOR_EACH (&n->pods, it) {
		struct pod *p = HM_CONTAINER(it, struct pod, link);

		if (p->deleted) {
			pod_free(p);
			continue;
		}
		if (is_over(p))
			grants_clear(p);
	}
}

static uint64_t wanted(const struct container *c, const char *resource)
{
	for (size_t k = 0; k < c->grant_count; k++) {
		if (strcmp(c->grants[k].resource, resource) == 0)
			return c->grants[k].wanted;
	}
	return 0;
}

/* What the scheduler counts: the most that is held at one time. */
static uint64_t effective(const struct pod *p, const char *resource)
{
	uint64_t sidecars = 0, mains = 0, most = 0;

	for (size_t i = 0; i < p->container_count; i++) {
		const struct container *c = &p->containers[i];
		uint64_t n = wanted(c, resource);

		if (c->sidecar)
			sidecars += n;
		else if (!c->init)
			mains += n;
		if (c->init && sidecars + (c->sidecar ? 0 : n) > most)
			most = sidecars + (c->sidecar ? 0 : n);
	}
	return sidecars + mains > most ? sidecars + mains : most;
}

static uint64_t committed(const struct node *n, const char *resource)
{
	uint64_t sum = 0;

	LIST_FOR_EACH (&n->pods, it) {
		const struct pod *p = HM_CONTAINER(it, struct pod, link);

		if (!is_over(p) && p->admitted)
			sum += effective(p, resource);
	}
	return sum;
}

/* The scheduler's part: does the node have room? */
static bool fits(const struct pod *p)
{
	for (size_t i = 0; i < p->container_count; i++) {
		for (size_t k = 0; k < p->containers[i].grant_count; k++) {
			const char *resource = p->containers[i].grants[k].resource;
			const struct plugin *plugin = plugins_find(p->node, resource);

			if (plugin == NULL ||
			    committed(p->node, resource) + effective(p, resource) > plugin_healthy(plugin))
				return false;
		}
	}
	return true;
}

/* ---- the grant in hand ---- */

static void next_grant(struct admission *a);

static struct container *container_of(const struct admission *a)
{
	return &a->pod->containers[a->container];
}

static struct grant *grant_of(const struct admission *a)
{
	return &container_of(a)->grants[a->grant];
}

static void reject(struct admission *a, const char *call, const char *text)
{
	struct pod *p = a->pod;
	struct hm_err why;

	hm_err_set(&why, HM_EINTERNAL, "Pod was rejected: Allocate failed due to %s%s, which is unexpected", call,
		   text);
	let_go(a);
	pod_reject(p, "UnexpectedAdmissionError", why.msg);
	node_sync(a->node);
}

/* "rpc error: code = Internal desc = <text>", as the kubelet's messages quote a plugin's error. */
static void describe(struct hm_err *e, int status, const char *text)
{
	hm_err_set(e, HM_EINTERNAL, "rpc error: code = %s desc = %s", status_words(status), text);
}

static void key_of(struct str *out, const char *resource, const char *id)
{
	str_clear(out);
	str_addf(out, "%s %s", resource, id);
}

static void update_reusable(struct admission *a, const struct grant *g)
{
	const struct container *c = container_of(a);
	hm_auto_str key = { 0 };

	for (size_t i = 0; i < g->ids.count; i++) {
		key_of(&key, g->resource, g->ids.list[i]);
		if (c->init && !c->sidecar)
			ids_add(&a->reusable, str_text(&key));
		else
			ids_remove(&a->reusable, str_text(&key));
	}
}

static void on_allocated(void *arg, const uint8_t *msg, size_t n)
{
	struct admission *a = arg;
	struct grant *g = grant_of(a);
	pb_auto V1beta1__AllocateResponse *m =
		pb_unpack(&v1beta1__allocate_response__descriptor, "AllocateResponse", msg, n, &a->failure);

	if (m == NULL)
		return;
	if (m->n_container_responses != 1) {
		hm_err_set(&a->failure, HM_EPROTO, "no containers return in allocation response");
		return;
	}
	str_clear(&g->answer);
	pb_pack(&g->answer, m->container_responses[0]);
	a->answered = true;
}

static void on_allocate_end(void *arg, int status, const char *text)
{
	struct admission *a = arg;
	struct hm_err e;

	a->call = NULL;
	if (a->pod == NULL)
		return; /* forgotten meanwhile */
	if (status != RPC_OK || !a->answered) {
		describe(&e, status, status != RPC_OK ? text : a->failure.msg);
		ids_clear(&grant_of(a)->ids);
		reject(a, "", status != RPC_OK ? e.msg : a->failure.msg);
		return;
	}
	grant_of(a)->allocated = true;
	update_reusable(a, grant_of(a));
	if (checkpoint_save(a->node, &e) < 0)
		log_warn("checkpoint", KV_ERR(&e));
	a->grant++;
	next_grant(a);
}

static void start_call(struct admission *a, const char *method, const struct str *msg,
		       void (*message)(void *, const uint8_t *, size_t), void (*done)(void *, int, const char *))
{
	const struct plugin *plugin = plugins_find(a->node, grant_of(a)->resource);
	const struct rpc_reply reply = { message, done, a };
	struct hm_err e = { 0 };

	a->answered = false;
	a->failure = e;
	CHECK(!str_failed(msg));
	if (plugin == NULL || plugin->client == NULL)
		hm_err_set(&e, HM_EAGAIN, "endpoint of %s has been stopped", grant_of(a)->resource);
	else if (rpc_client_call(plugin->client, method, (const uint8_t *)str_text(msg), msg->n, 0, &reply, &a->call,
				 &e) == 0)
		return;
	ids_clear(&grant_of(a)->ids);
	reject(a, "", e.msg);
}

static void allocate(struct admission *a)
{
	V1beta1__ContainerAllocateRequest one = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	hm_auto_str msg = { 0 };
	struct grant *g = grant_of(a);
	struct ids shuffled = { 0 };

	g->ids = a->chosen;
	a->chosen = (struct ids) { 0 };
	checkpoint_note_devices(g, plugins_find(a->node, g->resource));
	ids_copy(&shuffled, &g->ids);
	ids_shuffle(&shuffled); /* the kubelet's sets have no order */
	one.devices_ids = shuffled.list;
	one.n_devices_ids = shuffled.count;
	pb_pack_field(&msg, 1, &one);
	ids_clear(&shuffled);
	start_call(a, "/v1beta1.DevicePlugin/Allocate", &msg, on_allocated, on_allocate_end);
}

/* Free and healthy, and not chosen already. */
static bool is_free(const struct admission *a, const struct device *d)
{
	return d->healthy && !ids_has(&a->chosen, d->id) && !in_use(a->node, grant_of(a)->resource, d->id);
}

/* Of `ids`, those that are available, as many as are wanted. */
static void choose_of(struct admission *a, const struct ids *ids)
{
	for (size_t i = 0; i < ids->count && a->chosen.count < grant_of(a)->wanted; i++) {
		if (ids_has(&a->available, ids->list[i]))
			ids_add(&a->chosen, ids->list[i]);
	}
}

static void on_preferred(void *arg, const uint8_t *msg, size_t n)
{
	struct admission *a = arg;
	pb_auto V1beta1__PreferredAllocationResponse *m = pb_unpack(&v1beta1__preferred_allocation_response__descriptor,
								    "PreferredAllocationResponse", msg, n, &a->failure);

	if (m == NULL)
		return;
	ids_clear(&a->preferred);
	for (size_t i = 0; m->n_container_responses == 1 && i < m->container_responses[0]->n_deviceids; i++)
		ids_add(&a->preferred, m->container_responses[0]->deviceids[i]);
	a->answered = true;
}

static void on_preferred_end(void *arg, int status, const char *text)
{
	struct admission *a = arg;
	struct hm_err e;

	a->call = NULL;
	if (a->pod == NULL)
		return;
	describe(&e, status, text);
	if (status != RPC_OK || !a->answered) {
		reject(a, "device plugin GetPreferredAllocation rpc failed with err: ",
		       status != RPC_OK ? e.msg : a->failure.msg);
		return;
	}
	choose_of(a, &a->preferred); /* what is unknown or taken is ignored */
	choose_of(a, &a->available);
	allocate(a);
}

static void ask_preferred(struct admission *a)
{
	V1beta1__ContainerPreferredAllocationRequest one = V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	struct ids available = { 0 };
	hm_auto_str msg = { 0 };

	ids_copy(&available, &a->available);
	for (size_t i = 0; i < a->chosen.count; i++)
		ids_append(&available, a->chosen.list[i]);
	ids_shuffle(&available);
	one.available_deviceids = available.list;
	one.n_available_deviceids = available.count;
	one.must_include_deviceids = a->chosen.list;
	one.n_must_include_deviceids = a->chosen.count;
	one.allocation_size = (int32_t)grant_of(a)->wanted;
	pb_pack_field(&msg, 1, &one);
	ids_clear(&available);
	start_call(a, "/v1beta1.DevicePlugin/GetPreferredAllocation", &msg, on_preferred, on_preferred_end);
}

static void choose(struct admission *a)
{
	const struct grant *g = grant_of(a);
	const struct plugin *p = plugins_find(a->node, g->resource);
	hm_auto_str key = { 0 };
	struct hm_err why;

	ids_clear(&a->chosen);
	ids_clear(&a->available);
	if (p == NULL || plugin_healthy(p) == 0) {
		hm_err_set(&why, HM_EAGAIN, "no healthy devices present; cannot allocate unhealthy devices %s",
			   g->resource);
		reject(a, "", why.msg);
		return;
	}
	for (size_t i = 0; i < p->device_count; i++) {
		key_of(&key, g->resource, p->devices[i].id);
		if (a->chosen.count < g->wanted && ids_has(&a->reusable, str_text(&key)))
			ids_add(&a->chosen, p->devices[i].id);
	}
	for (size_t i = 0; i < p->device_count; i++) {
		if (is_free(a, &p->devices[i]))
			ids_append(&a->available, p->devices[i].id);
	}
	if (a->chosen.count + a->available.count < g->wanted) {
		hm_err_set(&why, HM_ELIMIT,
			   "requested number of devices unavailable for %s. Requested: %llu, Available: %zu",
			   g->resource, (unsigned long long)(g->wanted - a->chosen.count), a->available.count);
		reject(a, "", why.msg);
	} else if (a->chosen.count == g->wanted) {
		allocate(a);
	} else if (p->wants_preferred) {
		ask_preferred(a);
	} else {
		choose_of(a, &a->available);
		allocate(a);
	}
}

static void next_grant(struct admission *a)
{
	struct pod *p = a->pod;

	while (a->container < p->container_count && a->grant == container_of(a)->grant_count) {
		a->container++;
		a->grant = 0;
	}
	if (a->container < p->container_count) {
		choose(a);
		return;
	}
	let_go(a);
	pod_admitted(p);
	node_sync(a->node);
}

void admission_step(struct node *n)
{
	struct admission *a = n->admission;

	if (a->pod != NULL || !n->kubelet_up || n->readmitting)
		return;
	LIST_FOR_EACH (&n->pods, it) {
		struct pod *p = HM_CONTAINER(it, struct pod, link);

		if (p->admitted || is_over(p) || !fits(p))
			continue;
		purge(n);
		p->admitted = true; /* the scheduler bound it; a rejection ends it */
		a->pod = p;
		a->container = a->grant = 0;
		next_grant(a);
		return;
	}
}
