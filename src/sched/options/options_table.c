#include "sched/options/options_table.h"

#include <string.h>

enum { SECOND = 1000, HOUR = 3600 * SECOND };

void sched_options_table(struct sched_options *o, struct option_spec table[SCHED_OPTION_COUNT])
{
	const struct option_spec specs[] = {
		{ "http_bind", NULL, OPTION_TEXT, &o->http_bind, 0, 0, NULL, "ADDRESS:PORT",
		  "serve the extender and the webhook here" },
		{ "cert_file", NULL, OPTION_TEXT, &o->cert_file, 0, 0, NULL, "PATH",
		  "our certificate with those that vouch for it; with --key_file: HTTPS. Read again when it changes" },
		{ "key_file", NULL, OPTION_TEXT, &o->key_file, 0, 0, NULL, "PATH", "the certificate's private key" },
		{ "client-ca-file", NULL, OPTION_TEXT, &o->client_ca_file, 0, 0, NULL, "PATH",
		  "who asks for a placement or an admission must show a certificate of these authorities" },
		{ "token-file", NULL, OPTION_TEXT, &o->token_file, 0, 0, NULL, "PATH",
		  "or this bearer token; either will do where both are given" },
		{ "metrics-bind-address", NULL, OPTION_TEXT, &o->metrics_bind_address, 0, 0, NULL, "ADDRESS:PORT",
		  "serve /metrics here, by plain HTTP; empty: nowhere" },
		{ "scheduler-name", NULL, OPTION_TEXT, &o->scheduler_name, 0, 0, NULL, "NAME",
		  "the scheduler that pods with GPUs are given; the source of our events" },
		{ "node-scheduler-policy", NULL, OPTION_TEXT, &o->node_policy, 0, 0, NULL, "POLICY",
		  "spread, or binpack" },
		{ "gpu-scheduler-policy", NULL, OPTION_TEXT, &o->gpu_policy, 0, 0, NULL, "POLICY",
		  "binpack, spread, topology-aware, mutex, numa" },
		{ "node-label-selector", NULL, OPTION_TEXT, &o->node_label_selector, 0, 0, NULL, "K=V,...",
		  "only nodes with all these labels are looked at" },
		{ "kube-qps", NULL, OPTION_F64, &o->kube_qps, 0, 100000, NULL, NULL,
		  "requests to the API server in a second; 0: no limit of ours" },
		{ "kube-burst", NULL, OPTION_U64, &o->kube_burst, 0, 100000, NULL, NULL,
		  "requests that may come at once; 0: twice --kube-qps" },
		{ "kube-timeout", NULL, OPTION_U64, &o->kube_timeout_s, 0, 3600, NULL, "SECONDS",
		  "the time a request to the API server may take; 0: 30" },
		{ "kubeconfig", NULL, OPTION_TEXT, &o->kubeconfig, 0, 0, NULL, "PATH",
		  "the API server and who we are; default: $KUBECONFIG, the pod's account, ~/.kube/config" },
		{ "node-lock-timeout", "HAMI_NODELOCK_EXPIRE", OPTION_MS, &o->node_lock_timeout_ms, SECOND, 24 * HOUR,
		  NULL, NULL, "a node's lock that is older is nobody's" },
		{ "node-lock-retry-timeout", NULL, OPTION_MS, &o->node_lock_retry_ms, 0, HOUR, NULL, NULL,
		  "how long a pod of a group waits for a node's lock; 0: not at all" },
		{ "force-overwrite-default-scheduler", NULL, OPTION_BOOL, &o->force_overwrite_default_scheduler, 0, 0,
		  NULL, NULL, "pods of default-scheduler that ask for GPUs become ours" },
		{ "leader-elect", NULL, OPTION_BOOL, &o->leader_elect, 0, 0, NULL, NULL,
		  "one replica places pods: the one whose Lease it is" },
		{ "leader-elect-resource-name", NULL, OPTION_TEXT, &o->leader_elect_name, 0, 0, NULL, "NAME",
		  "the Lease" },
		{ "leader-elect-resource-namespace", NULL, OPTION_TEXT, &o->leader_elect_namespace, 0, 0, NULL, "NAME",
		  "its namespace; default: this pod's" },
		{ "legacy-metrics", NULL, OPTION_BOOL, &o->legacy_metrics, 0, 0, NULL, NULL,
		  "metrics by their former names, too" },
		{ "pod-name", "POD_NAME", OPTION_TEXT, &o->pod_name, 0, 0, NULL, "NAME", "this pod" },
		{ "pod-namespace", "POD_NAMESPACE", OPTION_TEXT, &o->pod_namespace, 0, 0, NULL, "NAME",
		  "its namespace" },
		{ "device-config-file", NULL, OPTION_TEXT, &o->device_config_file, 0, 0, NULL, "PATH",
		  "HAMi's device-config.yaml; without it the defaults of HAMi's chart" },
		{ "annotation-writers", NULL, OPTION_TEXT, &o->annotation_writers, 0, 0, NULL, "USER,...",
		  "who may write allocations and signatures into pods: our user name, and the agents'" },
		{ "read-header-timeout", NULL, OPTION_MS, &o->read_header_ms, SECOND / 10, HOUR, NULL, NULL,
		  "from the connection, or a request's first byte, to the end of its header" },
		{ "read-timeout", NULL, OPTION_MS, &o->read_ms, SECOND / 10, HOUR, NULL, NULL,
		  "from there to the end of its body; and the same for taking our answer" },
		{ "idle-timeout", NULL, OPTION_MS, &o->idle_ms, SECOND / 10, 24 * HOUR, NULL, NULL,
		  "how long a connection is kept without a request" },
		{ "max-connections", NULL, OPTION_U64, &o->max_connections, 10, 100000, NULL, NULL,
		  "beyond it the one that is idle longest is closed" },
		{ "log-level", "HAMI_LOG_LEVEL", OPTION_CHOICE, &o->log_level, 0, 0,
		  "DEBUG|INFO|WARN|ERROR|debug|info|warn|error", "LEVEL",
		  "least level logged: DEBUG, INFO, WARN or ERROR" },
		{ "v", NULL, OPTION_U64, &o->v, 0, 10, NULL, NULL, "verbosity as klog's: 0 to 10" },
	};

	_Static_assert(HM_COUNT(specs) == SCHED_OPTION_COUNT, "SCHED_OPTION_COUNT");
	memcpy(table, specs, sizeof specs);
}
