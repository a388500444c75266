/* Every file the agent touches, from the options: one place that knows the layout (contract/host.h). */
#ifndef HM_AGENT_OPTIONS_PATHS_H
#define HM_AGENT_OPTIONS_PATHS_H

#include <stdint.h>

#include "agent/options/options.h"
#include "core/err.h"

/* AGENT_PATH_OPTION_BYTES and the longest tail below it fit. */
enum { AGENT_PATH_BYTES = 512 };

struct agent_path {
	char s[AGENT_PATH_BYTES];
};

struct agent_paths {
	struct agent_path state, claims, alloc, lib, counter, node, runtime, health;
	struct agent_path cdi, plugin_dir, kubelet_socket, checkpoint, pod_resources; /* kubelet_socket "": none */
	char kubelet_name[108]; /* the kubelet socket's name in the plugin folder; "" where it is elsewhere */
};

/* -HM_EINVAL where the kubelet socket's path is longer than a socket's path may be. */
int agent_paths_init(struct agent_paths *p, const struct agent_options *o, struct hm_err *e) HM_MUST_USE;

/* Our socket of this name in the plugin folder. -HM_EINVAL as above. */
int agent_path_socket(const struct agent_paths *p, const char *name, struct agent_path *out,
		      struct hm_err *e) HM_MUST_USE;

/* What belongs to one Allocate number. */
struct agent_path agent_path_alloc(const struct agent_paths *p, uint64_t number, const char *file); /* "": the folder */
struct agent_path agent_path_spec(const struct agent_paths *p, uint64_t number);

#endif
