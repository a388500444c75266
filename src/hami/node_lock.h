/* hami.io/mutex.lock of a node: HAMi's scheduler takes it before it binds a pod, the node's agent removes it when the
 * pod's devices are handed out. "<RFC 3339 time>,<pod namespace>,<pod name>"; older schedulers wrote the time alone. */
#ifndef HM_HAMI_NODE_LOCK_H
#define HM_HAMI_NODE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/err.h"

enum { NODE_LOCK_NAME_BYTES = 256 }; /* Kubernetes' longest name, and the NUL */

struct node_lock {
	int64_t taken_s; /* Unix seconds; before 1970 negative */
	char pod_namespace[NODE_LOCK_NAME_BYTES], pod_name[NODE_LOCK_NAME_BYTES]; /* both "": the time stood alone */
};

/* -HM_EPROTO where it is neither of the two forms, or the time is none. Owns nothing. */
int node_lock_parse(const char *value, struct node_lock *out, struct hm_err *e) HM_MUST_USE;

/* Appends the value, the time in UTC ("2026-08-21T06:20:39Z"); years 1970 to 9999. */
void node_lock_write(const struct node_lock *lock, struct str *out);

/* HAMi's owner rule: may the agent remove this lock (NULL: there is none) on behalf of that pod? A value with a comma
 * must end in ",<namespace>,<name>"; any other value is nobody's and is removed by whoever comes. The value has no
 * UID: the caller makes sure that the pod of that name is the one it means, and patches with the resourceVersion under
 * which it read the value. */
bool node_lock_releasable(const char *value, const char *pod_namespace, const char *pod_name);

#endif
