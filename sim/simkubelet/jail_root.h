/* Inside a jail's child: the new root. */
#ifndef HM_SIMKUBELET_JAIL_ROOT_H
#define HM_SIMKUBELET_JAIL_ROOT_H

#include "sim/simkubelet/jail.h"

/* In a fresh mount namespace: puts the root together and changes to it, with the jail's mounts. */
int jail_root_enter(const struct jail *j, struct hm_err *e) HM_MUST_USE;

#endif
