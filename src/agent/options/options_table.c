#include <string.h>

#include "agent/options/options.h"
#include "contract/host.h"
#include "core/macros.h"

void agent_options_table(struct agent_options *o, struct option_spec table[AGENT_OWN_OPTION_COUNT])
{
	const struct option_spec specs[] = {
		{ "mode", NULL, OPTION_CHOICE, &o->mode, 0, 0, "slices|hami|dra", NULL,
		  "what the node offers: slices of its cards, or HAMi's resources; dra is not in this version; "
		  "default: "
		  "slices, hami where --config-file is given" },
		{ "binding", NULL, OPTION_CHOICE, &o->binding, 0, 0, "auto|late|classic", NULL,
		  "late: by CDI when the container starts; classic: in the Allocate answer; auto: late where it can "
		  "work" },
		{ "resource-name", NULL, OPTION_TEXT, &o->resource_name, 0, 0, NULL, "NAME",
		  "the resource that pods ask for; in mode hami nvidia.com/gpu by default" },
		{ "node-name", "NodeName", OPTION_TEXT, &o->node_name, 0, 0, NULL, "NAME",
		  "the Node object that is ours", NULL, "NODE_NAME" },
		{ "cores-per-device", "HAMI_VGPU_CORES_PER_DEVICE", OPTION_U64, &o->cores_per_device, 1,
		  HM_MAX_SLOTS_PER_CARD, NULL, NULL, "slots that each card is cut into" },
		{ "memory-mb-per-core", "HAMI_VGPU_MEMORY_MB_PER_CORE", OPTION_U64, &o->memory_mb_per_core, 0,
		  1ULL << 30, NULL, "MIB", "memory of a slot; 0: the card's memory / slots" },
		{ "slicing", "HAMI_VGPU_SLICING", OPTION_CHOICE, &o->slicing, 0, 0, "static|dynamic", NULL,
		  "static: slots of one vGPU should be neighbours; dynamic: any will do" },
		{ "oversubscribe", "HAMI_VGPU_OVERSUBSCRIBE", OPTION_BOOL, &o->oversubscribe, 0, 0, NULL, NULL,
		  "memory that a card cannot back is managed memory; slots may have more than the card" },
		{ "enable-topology", "HAMI_ENABLE_TOPOLOGY", OPTION_BOOL, &o->enable_topology, 0, 0, NULL, NULL,
		  "tell the kubelet each device's NUMA node; in mode hami what enableNumaTopology says" },
		{ "fail-on-init-error", "FAIL_ON_INIT_ERROR", OPTION_BOOL, &o->fail_on_init_error, 0, 0, NULL, NULL,
		  "exit where NVML cannot be initialised at start, instead of waiting for the driver; in mode hami "
		  "true by "
		  "default" },
		{ "kubelet-socket", "KUBELET_SOCKET", OPTION_TEXT, &o->kubelet_socket, 0, 0, NULL, "PATH",
		  "where the kubelet takes registrations; empty: we serve and never register" },
		{ "device-plugin-dir", NULL, OPTION_TEXT, &o->device_plugin_dir, 0, 0, NULL, "DIR",
		  "the kubelet's plugin folder: our socket and its checkpoint; default: the kubelet socket's folder" },
		{ "pod-resources-socket", NULL, OPTION_TEXT, &o->pod_resources_socket, 0, 0, NULL, "PATH",
		  "the kubelet's list of pods: their names, and which have ended" },
		{ "state-dir", NULL, OPTION_TEXT, &o->state_dir, 0, 0, NULL, "DIR",
		  "our own state; the same path on the node and here" },
		{ "cdi-dir", NULL, OPTION_TEXT, &o->cdi_dir, 0, 0, NULL, "DIR",
		  "where the container runtime reads CDI specs" },
		{ "nvidia-cdi-spec", NULL, OPTION_TEXT, &o->nvidia_cdi_spec, 0, 0, NULL, "PATH",
		  "the driver's own CDI spec, to copy a card's nodes and libraries from" },
		{ "nvml-library", NULL, OPTION_TEXT, &o->nvml_library, 0, 0, NULL, "PATH",
		  "NVML; default: libnvidia-ml.so.1 by the loader's search" },
		{ "driver-root", NULL, OPTION_TEXT, &o->driver_root, 0, 0, NULL, "DIR",
		  "where the driver is installed, without a CDI spec of its own: its libraries are mounted from here" },
		{ "device-root", "HAMI_DEVICE_ROOT", OPTION_TEXT, &o->device_root, 0, 0, NULL, "DIR",
		  "the folder that holds dev/nvidia*; default: the driver root" },
		{ "mig-minors", NULL, OPTION_TEXT, &o->mig_minors, 0, 0, NULL, "PATH",
		  "the driver's list of MIG instances' device nodes" },
		{ "libvgpu", NULL, OPTION_TEXT, &o->libvgpu, 0, 0, NULL, "PATH",
		  "the libvgpu.so to install; default: the one installed or built with this program" },
		{ "hami-monitor-dir", NULL, OPTION_TEXT, &o->hami_monitor_dir, 0, 0, NULL, "DIR",
		  "write a file for each container here, as HAMi's vGPUmonitor reads them: its HOOK_PATH/containers" },
		{ "cdi-annotations", NULL, OPTION_BOOL, &o->cdi_annotations, 0, 0, NULL, NULL,
		  "name the CDI device in an annotation too, for kubelets before 1.29" },
		{ "healthz-bind-address", NULL, OPTION_TEXT, &o->healthz_bind_address, 0, 0, NULL, "ADDRESS:PORT",
		  "serve /healthz and /readyz here" },
		{ "metrics-bind-address", NULL, OPTION_TEXT, &o->metrics_bind_address, 0, 0, NULL, "ADDRESS:PORT",
		  "serve /metrics here" },
		{ "kubeconfig", NULL, OPTION_TEXT, &o->kubeconfig, 0, 0, NULL, "PATH",
		  "the API server and who we are; default: $KUBECONFIG, the pod's account, ~/.kube/config" },
		{ "kube-qps", NULL, OPTION_U64, &o->kube_qps, 0, 100000, NULL, NULL,
		  "requests to the API server in a second; 0: no limit of ours" },
		{ "kube-burst", NULL, OPTION_U64, &o->kube_burst, 0, 100000, NULL, NULL,
		  "requests that may come at once; 0: twice --kube-qps" },
		{ "signature", NULL, OPTION_CHOICE, &o->signature, 0, 0, "require|warn|off", NULL,
		  "allocations without our scheduler's signature, once there are keys: refused, told, or not looked "
		  "at" },
		{ "signature-keys", NULL, OPTION_TEXT, &o->signature_keys, 0, 0, NULL, "DIR",
		  "the scheduler's public keys, a file each" },
		{ "compat", NULL, OPTION_BOOL, &o->compat, 0, 0, NULL, NULL,
		  "do as HAMi does where that is unsafe: a pod's CUDA_DISABLE_CONTROL is obeyed" },
		{ "device-health-checks", NULL, OPTION_TEXT, &o->device_health_checks, 0, 0, NULL, "LIST",
		  "what makes a card unhealthy, words with commas between: xid, ecc, lost; all; none" },
		{ "disable-health-checks", "DP_DISABLE_HEALTHCHECKS", OPTION_TEXT, &o->disable_health_checks, 0, 0,
		  NULL, "LIST", "Xids that are passed over; all, xids: every one" },
		{ "enable-health-checks", "DP_ENABLE_HEALTHCHECKS", OPTION_TEXT, &o->enable_health_checks, 0, 0, NULL,
		  "LIST", "Xids that make a card unhealthy whatever else is said; all, xids: every one" },
		{ "health-recovery-seconds", NULL, OPTION_U64, &o->health_recovery_seconds, 0, 86400, NULL, "SECONDS",
		  "a sick card that answers well for so long is healthy again; 0: never" },
		{ "config", NULL, OPTION_TEXT, &o->config, 0, 0, NULL, "PATH", "YAML file with the options as keys" },
		{ "log-level", "HAMI_LOG_LEVEL", OPTION_CHOICE, &o->log_level, 0, 0,
		  "DEBUG|INFO|WARN|ERROR|debug|info|warn|error", "LEVEL",
		  "least level logged: DEBUG, INFO, WARN or ERROR" },
		{ "v", NULL, OPTION_U64, &o->v, 0, 10, NULL, NULL, "verbosity as klog's: 0 to 10" },
	};

	_Static_assert(HM_COUNT(specs) == AGENT_OWN_OPTION_COUNT, "AGENT_OWN_OPTION_COUNT");
	memcpy(table, specs, sizeof specs);
}
