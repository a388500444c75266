/* A pod's JSON as placement knows it: what its containers ask for and what its author wishes. For pods of the watch and
 * of kube-scheduler's requests alike. Untrusted: whoever may create pods wrote it. Pure. */
#ifndef HM_SCHED_VIEW_POD_READ_H
#define HM_SCHED_VIEW_POD_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "hami/device_config.h"
#include "io/json.h"
#include "model/placement/pod_ask.h"

enum { POD_READ_MAX_CONTAINERS = 1024 };

/* The resources' names and the defaults; borrowed from the configuration. */
struct pod_rules {
	const char *count, *memory, *percent, *cores; /* "": there is no such resource */
	struct ask_rules ask;
};
struct pod_rules pod_rules_of(const struct device_config *c);

/* Containers, wishes, CPU and memory (host_read.h). Texts are borrowed from the tree; *out is freed with pod_ask_fini,
 * on failure too. -HM_EINVAL names container and resource where an amount is no whole number or out of range,
 * -HM_ELIMIT: too many containers; *out is then the most that the pod may want, whole cards for what cannot be read.
 * -HM_EPROTO: no pod; -HM_ENOMEM. */
int pod_read_ask(const struct cJSON *pod, const struct pod_rules *rules, struct pod_ask *out,
		 struct hm_err *e) HM_MUST_USE;

/* Of an item of initContainers (init) or containers. */
enum ask_kind pod_kind_of(const struct cJSON *container, bool init);

/* metadata.annotations[key]; NULL where there is none. */
const char *pod_annotation(const struct cJSON *pod, const char *key);
/* spec.nodeName; NULL where it is bound to none. */
const char *pod_node(const struct cJSON *pod);

/* A member, by its exact name; NULL where `at` is NULL or no object, or has none. */
const struct cJSON *pod_member(const struct cJSON *at, const char *key);
const char *pod_text(const struct cJSON *at, const char *key); /* NULL where it is no text */

#endif
