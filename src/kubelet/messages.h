/* Device plugin messages, bytes to structs and back, without a socket. What comes from the peer is checked here, once.
 * Decoded requests borrow from `message`, which the caller frees with pb_free. */
#ifndef HM_KUBELET_MESSAGES_H
#define HM_KUBELET_MESSAGES_H

#include "kubelet/device_plugin.h"
#include "kubelet/pb.h"

/* *out is an array of *count requests (free it), 1 to PB_MAX_CONTAINERS. */
int message_read_allocate(const void *bytes, size_t n, void **message, struct dp_container_request **out, size_t *count,
			  struct hm_err *e) HM_MUST_USE;
/* As above; size is 1 to available_count, must has at most size. */
int message_read_preferred(const void *bytes, size_t n, void **message, struct dp_preferred_request **out,
			   size_t *count, struct hm_err *e) HM_MUST_USE;
int message_read_pre_start(const void *bytes, size_t n, void **message, struct dp_container_request *out,
			   struct hm_err *e) HM_MUST_USE;

/* Each appends to *out and returns -HM_ENOMEM where memory is short. */
int message_write_options(struct str *out) HM_MUST_USE;
/* -HM_ELIMIT above RPC_MAX_SEND_BYTES. */
int message_write_devices(struct str *out, const struct dp_device *devices, size_t count, struct hm_err *e) HM_MUST_USE;
int message_write_preferred(struct str *out, const char *const *const *ids, const size_t *id_counts,
			    size_t count) HM_MUST_USE;
int message_write_allocate(struct str *out, const struct dp_container_answer *answers, size_t count) HM_MUST_USE;

#endif
