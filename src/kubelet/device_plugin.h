/* The device plugin API (v1beta1) as the kubelet speaks it, on rpc/: one server per resource. Knows nothing of GPUs. */
#ifndef HM_KUBELET_DEVICE_PLUGIN_H
#define HM_KUBELET_DEVICE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct dp_device {
	const char *id;
	bool healthy;
	int numa_node; /* -1: none told (no topology) */
};

/* What Allocate answers for one container; the strings are borrowed until dp_reply_allocate returns. */
struct dp_env {
	const char *name, *value;
};
struct dp_mount {
	const char *container_path, *host_path;
	bool read_only;
};
struct dp_node {
	const char *container_path, *host_path, *permissions; /* "rw" */
};
struct dp_container_answer {
	const struct dp_env *envs;
	size_t env_count;
	const struct dp_mount *mounts;
	size_t mount_count;
	const struct dp_node *nodes;
	size_t node_count;
	const struct dp_env *annotations;
	size_t annotation_count;
	const char *const *cdi_names; /* "vendor/class=device" */
	size_t cdi_count;
};

/* One container's part of a request; strings are valid until the handler returns. */
struct dp_container_request {
	const char *const *ids;
	size_t count;
};
struct dp_preferred_request {
	const char *const *available, *const *must;
	size_t available_count, must_count;
	int64_t size;
};

struct dp_plugin; /* the server */
struct dp_call;   /* an unanswered call; answer with exactly one dp_reply_* or dp_fail, at once or later */

struct dp_handlers {
	void (*preferred)(void *arg, struct dp_call *call, const struct dp_preferred_request *containers, size_t count);
	void (*allocate)(void *arg, struct dp_call *call, const struct dp_container_request *containers, size_t count);
	void (*pre_start)(void *arg, struct dp_call *call, const struct dp_container_request *container);
	/* The kubelet's ListAndWatch stream came or went (watchers: how many are open now). May be NULL. */
	void (*watchers)(void *arg, size_t watchers);
	/* The peer gave up on an unanswered call (PreStart's 30 s): `call` is dead. May be NULL where all answers come
	 * at once. */
	void (*gone)(void *arg, struct dp_call *call);
	void *arg;
};

/* Listens on socket_path. Serves GetDevicePluginOptions (both options true), ListAndWatch and the three handlers. Until
 * dp_set_devices was called ListAndWatch sends an empty list. */
int dp_plugin_new(struct loop *l, const char *socket_path, const struct dp_handlers *handlers, struct dp_plugin **out,
		  struct hm_err *e) HM_MUST_USE;
void dp_plugin_free(struct dp_plugin *p);
HM_DEFINE_AUTO(dp_plugin, dp_plugin_free);

/* The whole list, sent to all watchers and to later ones. -HM_ELIMIT where its message would exceed the kubelet's 4 MiB
 * (the list stays as it was). */
int dp_set_devices(struct dp_plugin *p, const struct dp_device *devices, size_t count, struct hm_err *e) HM_MUST_USE;
bool dp_owns_socket(const struct dp_plugin *p);
size_t dp_watchers(const struct dp_plugin *p);

void dp_reply_preferred(struct dp_call *call, const char *const *const *ids, const size_t *id_counts, size_t count);
void dp_reply_allocate(struct dp_call *call, const struct dp_container_answer *answers, size_t count);
void dp_reply_pre_start(struct dp_call *call);
void dp_fail(struct dp_call *call, const struct hm_err *e);
void dp_call_set_data(struct dp_call *call, void *data);
void *dp_call_data(const struct dp_call *call);

#endif
