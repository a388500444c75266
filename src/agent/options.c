#include "agent/options.h"

#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "contract/host.h"
#include "contract/names.h"
#include "core/check.h"

static const struct agent_options defaults = {
	.mode = "slices",
	.binding = "late",
	.slicing = "static",
	.resource_name = HM_RESOURCE_VGPU,
	.cores_per_device = 4,
	.enable_topology = true,
	.kubelet_socket = HM_DEVICE_PLUGIN_DIR "/" HM_KUBELET_SOCKET,
	.pod_resources_socket = HM_POD_RESOURCES_SOCKET,
	.state_dir = HM_STATE_DIR,
	.cdi_dir = HM_CDI_DIR,
	.log_level = "INFO",
};

static void fill_table(struct agent_options *o, struct option_spec *t)
{
	const struct option_spec specs[] = {
		{ "mode", NULL, OPTION_CHOICE, &o->mode, 0, 0, "slices|hami|dra", NULL,
		  "what the node offers; only slices in this version" },
		{ "binding", NULL, OPTION_CHOICE, &o->binding, 0, 0, "late|classic", NULL,
		  "late: by CDI when the container starts; classic: in the Allocate answer" },
		{ "resource-name", NULL, OPTION_TEXT, &o->resource_name, 0, 0, NULL, "NAME",
		  "the resource that pods ask for" },
		{ "cores-per-device", "HAMI_VGPU_CORES_PER_DEVICE", OPTION_U64, &o->cores_per_device, 1,
		  HM_MAX_SLOTS_PER_CARD, NULL, NULL, "slots that each card is cut into" },
		{ "memory-mb-per-core", "HAMI_VGPU_MEMORY_MB_PER_CORE", OPTION_U64, &o->memory_mb_per_core, 0,
		  1ULL << 30, NULL, "MIB", "memory of a slot; 0: the card's memory / slots" },
		{ "slicing", "HAMI_VGPU_SLICING", OPTION_CHOICE, &o->slicing, 0, 0, "static|dynamic", NULL,
		  "static: slots of one vGPU should be neighbours; dynamic: any will do" },
		{ "oversubscribe", "HAMI_VGPU_OVERSUBSCRIBE", OPTION_BOOL, &o->oversubscribe, 0, 0, NULL, NULL,
		  "memory that a card cannot back is managed memory; slots may have more than the card" },
		{ "enable-topology", "HAMI_ENABLE_TOPOLOGY", OPTION_BOOL, &o->enable_topology, 0, 0, NULL, NULL,
		  "tell the kubelet each device's NUMA node" },
		{ "fail-on-init-error", NULL, OPTION_BOOL, &o->fail_on_init_error, 0, 0, NULL, NULL,
		  "exit where NVML cannot be initialised at start, instead of waiting for the driver" },
		{ "kubelet-socket", NULL, OPTION_TEXT, &o->kubelet_socket, 0, 0, NULL, "PATH",
		  "where the kubelet takes registrations" },
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
		{ "libvgpu", NULL, OPTION_TEXT, &o->libvgpu, 0, 0, NULL, "PATH",
		  "the libvgpu.so to install; default: the one installed or built with this program" },
		{ "hami-monitor-dir", NULL, OPTION_TEXT, &o->hami_monitor_dir, 0, 0, NULL, "DIR",
		  "write a file for each container here, as HAMi's vGPUmonitor reads them: its HOOK_PATH/containers" },
		{ "cdi-annotations", NULL, OPTION_BOOL, &o->cdi_annotations, 0, 0, NULL, NULL,
		  "name the CDI device in an annotation too, for kubelets before 1.29" },
		{ "healthz-bind-address", NULL, OPTION_TEXT, &o->healthz_bind_address, 0, 0, NULL, "ADDRESS:PORT",
		  "serve /healthz and /readyz here" },
		{ "config", NULL, OPTION_TEXT, &o->config, 0, 0, NULL, "PATH", "YAML file with these options as keys" },
		{ "log-level", "HAMI_LOG_LEVEL", OPTION_CHOICE, &o->log_level, 0, 0,
		  "DEBUG|INFO|WARN|ERROR|debug|info|warn|error", "LEVEL",
		  "least level logged: DEBUG, INFO, WARN or ERROR" },
		{ "v", NULL, OPTION_U64, &o->v, 0, 6, NULL, NULL, "verbosity as klog's: 0 to 6" },
	};

	memcpy(t, specs, sizeof specs);
	_Static_assert(sizeof specs == AGENT_OPTION_COUNT * sizeof *t, "AGENT_OPTION_COUNT");
}

void agent_options_init(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT])
{
	*o = defaults;
	fill_table(o, table);
}

void agent_options_fini(struct agent_options *o)
{
	json_free(o->config_tree);
	o->config_tree = NULL;
}

bool agent_binds_late(const struct agent_options *o)
{
	return strcmp(o->binding, "late") == 0;
}

struct slots_config agent_slots_config(const struct agent_options *o)
{
	return (struct slots_config) { o->cores_per_device, o->memory_mb_per_core,
				       strcmp(o->slicing, "static") == 0 ? SLICING_STATIC : SLICING_DYNAMIC,
				       o->oversubscribe };
}

/* A path in a CDI spec or a socket address must mean the same everywhere, and no text may break a line. */
static int check_path(const char *flag, const char *path, struct hm_err *e)
{
	if (path == NULL)
		return 0;
	if (path[0] != '/')
		return hm_err_set(e, HM_EINVAL, "--%s: \"%s\" is not an absolute path", flag, path);
	if (strlen(path) > AGENT_PATH_OPTION_BYTES)
		return hm_err_set(e, HM_EINVAL, "--%s: the path is longer than %d bytes: %.40s...", flag,
				  AGENT_PATH_OPTION_BYTES, path);
	for (const char *p = path; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return hm_err_set(e, HM_EINVAL, "--%s: the path has a control character in it", flag);
	return 0;
}

static int check_paths(const struct agent_options *o, struct hm_err *e)
{
	const struct {
		const char *flag, *path;
	} paths[] = {
		{ "kubelet-socket", o->kubelet_socket },
		{ "device-plugin-dir", o->device_plugin_dir },
		{ "pod-resources-socket", o->pod_resources_socket },
		{ "state-dir", o->state_dir },
		{ "cdi-dir", o->cdi_dir },
		{ "nvidia-cdi-spec", o->nvidia_cdi_spec },
		{ "driver-root", o->driver_root },
		{ "device-root", o->device_root },
		{ "libvgpu", o->libvgpu },
		{ "hami-monitor-dir", o->hami_monitor_dir },
	};

	for (size_t i = 0; i < HM_COUNT(paths); i++)
		if (check_path(paths[i].flag, paths[i].path, e) < 0)
			return -e->code;
	return 0;
}

/* The kubelet's own rule: a domain that is not Kubernetes' own, a slash, a name. */
static int check_resource(const char *name, struct hm_err *e)
{
	const char *slash = strchr(name, '/');

	if (slash == NULL || slash == name || slash[1] == '\0' || strchr(slash + 1, '/') != NULL || strlen(name) > 200)
		return hm_err_set(e, HM_EINVAL, "--resource-name: \"%s\" is not of the form domain/name", name);
	for (const char *p = name; *p != '\0'; p++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./", *p) == NULL)
			return hm_err_set(e, HM_EINVAL,
					  "--resource-name: \"%s\" has a character that is no letter, digit, '-', '_' "
					  "or '.'",
					  name);
	if (strstr(name, "kubernetes.io/") != NULL)
		return hm_err_set(e, HM_EINVAL, "--resource-name: \"%s\": the kubelet refuses kubernetes.io", name);
	return 0;
}

static int check_together(const struct agent_options *o, struct hm_err *e)
{
	if (strcmp(o->mode, "slices") != 0)
		return hm_err_set(e, HM_EUNSUPPORTED, "--mode=%s: this version has only --mode=slices", o->mode);
	if (check_paths(o, e) < 0 || check_resource(o->resource_name, e) < 0)
		return -e->code;
	return 0;
}

int agent_options_read(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT], int argc, char **argv,
		       struct hm_err *e)
{
	int operand = argc, r;

	/* The first pass finds --config (and --help); the second puts environment and flags over the file. */
	r = options_parse(table, AGENT_OPTION_COUNT, argc, argv, &operand, e);
	if (r != OPTIONS_RUN)
		return r;
	if (operand < argc)
		return hm_err_set(e, HM_EINVAL, "unexpected argument \"%s\"; see --help", argv[operand]);
	if (o->config != NULL) {
		r = config_read(o->config, table, AGENT_OPTION_COUNT, &o->config_tree, e);
		if (r < 0)
			return r;
		r = options_parse(table, AGENT_OPTION_COUNT, argc, argv, &operand, e);
		if (r != OPTIONS_RUN)
			return r;
	}
	r = check_together(o, e);
	return r < 0 ? r : OPTIONS_RUN;
}
