#include <stdlib.h>
#include <string.h>

#include "agent/options/options.h"
#include "model/resource_name.h"

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
		{ "kubelet-socket", o->kubelet_socket[0] != '\0' ? o->kubelet_socket : NULL },
		{ "device-plugin-dir", o->device_plugin_dir },
		{ "pod-resources-socket", o->pod_resources_socket },
		{ "state-dir", o->state_dir },
		{ "cdi-dir", o->cdi_dir },
		{ "nvidia-cdi-spec", o->nvidia_cdi_spec },
		{ "driver-root", o->driver_root },
		{ "device-root", o->device_root },
		{ "mig-minors", o->mig_minors },
		{ "libvgpu", o->libvgpu },
		{ "hami-monitor-dir", o->hami_monitor_dir },
		{ "kubeconfig", o->kubeconfig },
		{ "signature-keys", o->signature_keys },
		{ "hook-path", o->hami.hook_path },
		{ "nvidia-driver-root", o->hami.nvidia_driver_root },
		{ "dev-root", o->hami.dev_root[0] != '\0' ? o->hami.dev_root : NULL },
		{ "nvidia-cdi-hook-path",
		  o->hami.nvidia_cdi_hook_path[0] != '\0' ? o->hami.nvidia_cdi_hook_path : NULL },
		{ "driver-root-ctr-path",
		  o->hami.driver_root_ctr_path[0] != '\0' ? o->hami.driver_root_ctr_path : NULL },
	};

	for (size_t i = 0; i < HM_COUNT(paths); i++)
		if (check_path(paths[i].flag, paths[i].path, e) < 0)
			return -e->code;
	return 0;
}

static int check_resource(const char *name, struct hm_err *e)
{
	const char *fault = resource_name_fault(name);

	return fault == NULL ? 0 : hm_err_set(e, HM_EINVAL, "--resource-name: \"%s\" %s", name, fault);
}

int agent_options_check(const struct agent_options *o, struct hm_err *e)
{
	if (strcmp(o->mode, "dra") == 0)
		return hm_err_set(e, HM_EUNSUPPORTED,
				  "--mode=dra: this version has only --mode=slices and --mode=hami");
	if (check_paths(o, e) < 0 || check_resource(o->resource_name, e) < 0)
		return -e->code;
	return agent_is_hami(o) ? hami_options_check(&o->hami, e) : 0;
}
