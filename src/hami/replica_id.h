/* Kubelet device ids of HAMi's resources: "<GPU-UUID>-<i>", and "<uuid>::<i>" of NVIDIA's time slicing. */
#ifndef HM_HAMI_REPLICA_ID_H
#define HM_HAMI_REPLICA_ID_H

#include <stdbool.h>
#include <stddef.h>

#include "core/macros.h"

/* The id of a card's i-th replica; false where it does not fit. */
bool replica_id_write(const char *uuid, unsigned i, char *out, size_t cap) HM_MUST_USE;

/* The card (or MIG device) of an id, by HAMi's rule: before "::"; of six dashes and a number behind the last one the
 * part before it; else the id itself. False (and "") where it does not fit. */
bool replica_id_card(const char *id, char *out, size_t cap) HM_MUST_USE;

#endif
