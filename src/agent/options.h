/* What hami-device-plugin can be told: flags, environment and a configuration file, from one table. Precedence: flag
 * over environment over file over default. docs/agent.md lists them (checked by a test). */
#ifndef HM_AGENT_OPTIONS_H
#define HM_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "core/err.h"
#include "io/json.h"
#include "model/slots.h"

struct agent_options {
	const char *mode, *binding, *slicing, *resource_name;
	uint64_t cores_per_device, memory_mb_per_core;
	bool enable_topology, fail_on_init_error, cdi_annotations, oversubscribe;
	const char *kubelet_socket, *device_plugin_dir, *pod_resources_socket, *state_dir, *cdi_dir;
	const char *nvidia_cdi_spec, *nvml_library, *driver_root, *device_root, *libvgpu, *hami_monitor_dir;
	const char *healthz_bind_address, *config, *log_level;
	uint64_t v;
	struct cJSON *config_tree; /* owned: what values from the file point into; lives as long as the options */
};

enum { AGENT_OPTION_COUNT = 25, AGENT_PATH_OPTION_BYTES = 400 };

/* The defaults, and the table over *o. */
void agent_options_init(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT]);
void agent_options_fini(struct agent_options *o);

/* Everything: file, environment, argv, and what must fit together. Returns an options_result or a negative code. */
int agent_options_read(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT], int argc, char **argv,
		       struct hm_err *e) HM_MUST_USE;

bool agent_binds_late(const struct agent_options *o);
struct slots_config agent_slots_config(const struct agent_options *o);

#endif
