/* The containers of a pod in review: what each asks for, and what is to be added to it. */
#ifndef HM_SCHED_WEBHOOK_CONTAINERS_H
#define HM_SCHED_WEBHOOK_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "model/placement/pod_ask.h"
#include "sched/webhook/amounts.h"

struct pod_container {
	const struct cJSON *node;
	const char *name, *list; /* the list is initContainers or containers */
	size_t index;            /* in it */
	enum ask_kind kind;
	bool privileged;
	struct amounts amounts;
	/* What containers_derive found: */
	bool gpu;                  /* it asks for cards */
	bool add_count, add_cores; /* its limits lack them */
};

struct pod_containers {
	struct pod_container *items; /* owned; init containers first */
	size_t count, cap;
	bool gpu; /* any of them */
};

void pod_containers_fini(struct pod_containers *p);
static inline void pod_containers_auto_fini(struct pod_containers *p)
{
	pod_containers_fini(p);
}
/* A local: hm_auto_pod_containers p = { 0 }; */
#define hm_auto_pod_containers __attribute__((cleanup(pod_containers_auto_fini))) struct pod_containers

/* Reads both lists; 0 also where the answer became a refusal. -HM_ENOMEM. */
int containers_read(const struct cJSON *spec, const struct device_config *c, struct pod_containers *out,
		    struct answer *answer, struct hm_err *e) HM_MUST_USE;

/* HAMi's defaults: the count where only amounts are said, and the whole compute of a card for who takes all its
 * memory. */
void containers_derive(struct pod_containers *p, const struct device_config *c);

/* Writes limits and environment. */
void containers_patch(const struct pod_containers *p, const struct device_config *c, struct str *patch);

/* What the pod asks for with what was derived. */
int containers_ask(const struct pod_containers *p, const struct device_config *c, struct pod_ask *out,
		   struct hm_err *e) HM_MUST_USE;

#endif
