/* What hami-scheduler can be told: flags and environment from one table, and HAMi's device-config.yaml. All of HAMi's
 * flags are taken; those without effect here are named once in the log. */
#ifndef HM_SCHED_OPTIONS_OPTIONS_H
#define HM_SCHED_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "base/str.h"
#include "base/texts.h"
#include "core/err.h"
#include "hami/device_config.h"

/* Texts are NULL where nothing is said and there is no default; they stay where they are until sched_options_fini. */
struct sched_options {
	const char *http_bind, *cert_file, *key_file, *client_ca_file, *token_file, *metrics_bind_address;
	const char *extender_clients; /* local, any */
	const char *scheduler_name;
	const char *node_policy;  /* "spread"; any other word packs */
	const char *gpu_policy;   /* as the annotation hami.io/gpu-scheduler-policy has it */
	const char *typical_pods; /* file; NULL: learned */
	const char *node_label_selector;
	double kube_qps; /* 0: no limit of ours */
	uint64_t kube_burst, kube_timeout_s;
	const char *kubeconfig;
	uint64_t node_lock_timeout_ms, node_lock_retry_ms;
	bool force_overwrite_default_scheduler, leader_elect, legacy_metrics;
	const char *leader_elect_name, *leader_elect_namespace;
	const char *leader_elect_by; /* follow, lease */
	uint64_t lease_duration_ms, lease_renew_ms, lease_retry_ms;
	const char *pod_name, *pod_namespace; /* this pod */
	const char *device_config_file;
	const char *signature_keys; /* folder; NULL: nothing is signed */
	const char *signature;      /* require, warn */
	bool tell_success, label_pods;
	const char *annotation_writers; /* user names, commas between */
	uint64_t read_header_ms, read_ms, idle_ms, max_connections, shutdown_delay_ms;
	const char *log_level;
	uint64_t v;
	struct device_config *device; /* owned; after sched_options_read never NULL */
	struct texts *told;           /* owned: what was warned of */
	struct str ignored;           /* HAMi's flags without effect that were given: "--debug, --enable-ascend" */
	char **argv;                  /* owned: the command line without those */
};

enum { SCHED_OPTION_COUNT = 42 };

void sched_options_init(struct sched_options *o, struct option_spec table[SCHED_OPTION_COUNT]);
void sched_options_fini(struct sched_options *o);

/* Environment, argv, the file, and what must fit together. Returns an options_result or a negative code. */
int sched_options_read(struct sched_options *o, const struct option_spec table[SCHED_OPTION_COUNT], int argc,
		       char **argv, struct hm_err *e) HM_MUST_USE;

/* The file as device_config_read has it; NULL or "": its defaults, which are those of HAMi's chart. */
int sched_device_config(const char *path, struct texts *told, struct device_config **out, struct hm_err *e) HM_MUST_USE;

/* The log as the options have it. */
int sched_options_set_log(const struct sched_options *o, struct hm_err *e) HM_MUST_USE;

#endif
