#include "sched/view/host_read.h"

#include "core/macros.h"
#include "hami/quantity.h"
#include "sched/view/pod_read.h"

enum { MIB_BITS = 20 };

/* Milli or bytes: sums stay far below what int64_t holds. */
#define MOST (HOST_MOST << MIB_BITS)

struct resource {
	const char *name;
	bool milli;
};
static const struct resource cpu = { "cpu", true }, memory = { "memory", false };

/* In milli, or in bytes; -1: it is not there or cannot be read. */
static int64_t amount_of(const struct cJSON *list, const struct resource *r)
{
	const struct cJSON *value = pod_member(list, r->name);
	struct quantity q = { 0 };

	if (value == NULL ||
	    (r->milli ? quantity_read_milli(value, &q.value, NULL) : quantity_read(value, &q, NULL)) < 0)
		return -1;
	return q.value < 0 ? 0 : HM_MIN(q.value, MOST);
}

static int64_t request_of(const struct cJSON *container, const struct resource *r)
{
	return HM_MAX(amount_of(pod_member(pod_member(container, "resources"), "requests"), r), 0);
}

static int64_t sum(int64_t a, int64_t b)
{
	return HM_MIN(a + b, MOST);
}

static int64_t of_containers(const struct cJSON *spec, const struct resource *r)
{
	const struct cJSON *item;
	int64_t running = 0, peak = 0;

	cJSON_ArrayForEach(item, pod_member(spec, "initContainers"))
	{
		int64_t now = sum(running, request_of(item, r));

		if (pod_kind_of(item, true) == ASK_SIDECAR)
			running = now;
		else
			peak = HM_MAX(peak, now);
	}
	cJSON_ArrayForEach(item, pod_member(spec, "containers")) running = sum(running, request_of(item, r));
	return HM_MAX(peak, running);
}

static int64_t of_pod(const struct cJSON *spec, const struct resource *r)
{
	int64_t whole = amount_of(pod_member(pod_member(spec, "resources"), "requests"), r);
	int64_t overhead = amount_of(pod_member(spec, "overhead"), r);

	return sum(whole >= 0 ? whole : of_containers(spec, r), HM_MAX(overhead, 0));
}

struct host_amount host_of_pod(const struct cJSON *pod)
{
	const struct cJSON *spec = pod_member(pod, "spec");
	int64_t bytes = of_pod(spec, &memory);

	return (struct host_amount) { HM_MIN(of_pod(spec, &cpu), HOST_MOST),
				      (bytes + (1 << MIB_BITS) - 1) >> MIB_BITS };
}

struct host_amount host_of_node(const struct cJSON *node)
{
	const struct cJSON *allocatable = pod_member(pod_member(node, "status"), "allocatable");
	int64_t bytes = amount_of(allocatable, &memory);

	return (struct host_amount) { HM_MIN(amount_of(allocatable, &cpu), HOST_MOST),
				      bytes < 0 ? -1 : bytes >> MIB_BITS };
}
