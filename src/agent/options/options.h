/* What hami-device-plugin can be told: flags, environment and files, from one table. Precedence: flag over environment
 * over --config over HAMi's files over default. docs/agent.md lists them (checked by a test). */
#ifndef HM_AGENT_OPTIONS_OPTIONS_H
#define HM_AGENT_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/options/hami_options.h"
#include "base/options.h"
#include "base/texts.h"
#include "core/err.h"
#include "model/slots.h"

/* Texts are NULL where nothing is said and there is no default. They stay where they are until agent_options_fini. */
struct agent_options {
	const char *mode; /* slices, hami; NULL only before agent_options_read */
	const char *binding, *slicing, *resource_name, *node_name;
	uint64_t cores_per_device, memory_mb_per_core;
	bool enable_topology, fail_on_init_error, cdi_annotations, oversubscribe;
	bool binding_is_auto; /* `binding` was auto before it was settled (selftest.h) */
	const char *kubelet_socket, *device_plugin_dir, *pod_resources_socket, *state_dir, *cdi_dir;
	const char *nvidia_cdi_spec, *nvml_library, *driver_root, *device_root, *libvgpu, *hami_monitor_dir,
		*mig_minors;
	const char *healthz_bind_address, *metrics_bind_address, *config, *log_level;
	const char *kubeconfig, *signature, *signature_keys;
	uint64_t kube_qps, kube_burst;
	bool compat;
	const char *device_health_checks, *disable_health_checks, *enable_health_checks;
	uint64_t health_recovery_seconds;
	uint64_t v;
	struct hami_options hami;
	int argc; /* what agent_options_read was given, to read it again */
	char **argv;
	struct texts *texts, *told; /* owned: what came from files; what was warned of */
};

enum {
	AGENT_OWN_OPTION_COUNT = 38,
	AGENT_OPTION_COUNT = AGENT_OWN_OPTION_COUNT + HAMI_OPTION_COUNT,
	AGENT_PATH_OPTION_BYTES = 400,
};

/* The defaults of mode slices, and the table over *o. */
void agent_options_init(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT]);
void agent_options_fini(struct agent_options *o);

/* Everything: files, environment, argv, and what must fit together. Returns an options_result or a negative code.
 * OPTIONS_VERSION_WORD: the word "version" stood there, as HAMi's plugin has it. */
enum { OPTIONS_VERSION_WORD = OPTIONS_VERSION + 1 };
int agent_options_read(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT], int argc, char **argv,
		       struct hm_err *e) HM_MUST_USE;

/* The log as the options have it. */
int agent_options_set_log(const struct agent_options *o, struct hm_err *e) HM_MUST_USE;

bool agent_is_hami(const struct agent_options *o);
bool agent_binds_late(const struct agent_options *o);
struct slots_config agent_slots_config(const struct agent_options *o);

/* options_table.c: our own options. */
void agent_options_table(struct agent_options *o, struct option_spec table[AGENT_OWN_OPTION_COUNT]);
/* options_check.c: what the table's kinds cannot say. */
int agent_options_check(const struct agent_options *o, struct hm_err *e) HM_MUST_USE;

#endif
