/* A file of pods as fgd's mix: what pods the cluster typically gets, where it is given and not learned. JSON as
 * `kubectl get pods -A -o json` prints it, or CSV with the columns of a trace (trace.h; a thousandth of a card is
 * rounded up to a percent). Those count that ask for cards. */
#ifndef HM_SCHED_SIMULATE_TYPICAL_PODS_H
#define HM_SCHED_SIMULATE_TYPICAL_PODS_H

#include "core/err.h"
#include "hami/device_config.h"
#include "model/placement/pod_mix.h"

/* Adds to the mix. Errors name the file; no pod with cards in it is -HM_EINVAL. Pods that cannot be read, or of more
 * shapes than the mix takes, are left out with a warning. */
int typical_pods_read(const char *path, const struct device_config *device, struct pod_mix *mix,
		      struct hm_err *e) HM_MUST_USE;

#endif
