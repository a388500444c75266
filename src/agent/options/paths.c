#include "agent/options/paths.h"

#include <string.h>

#include "contract/host.h"
#include "contract/names.h"
#include "core/check.h"
#include "core/fmt.h"

enum { SOCKET_PATH_BYTES = 107 };

static void HM_PRINTF(2, 3) set(struct agent_path *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CHECK(hm_vfmt(p->s, sizeof p->s, fmt, ap) < sizeof p->s);
	va_end(ap);
}

static void set_folder(struct agent_path *p, const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	set(p, "%.*s", (int)n, path);
}

static void set_plugin_dir(struct agent_paths *p, const struct agent_options *o)
{
	const char *slash = strrchr(o->kubelet_socket, '/');

	if (slash == NULL) {
		set_folder(&p->plugin_dir, o->device_plugin_dir != NULL ? o->device_plugin_dir : HM_DEVICE_PLUGIN_DIR);
		return;
	}
	if (o->device_plugin_dir != NULL)
		set_folder(&p->plugin_dir, o->device_plugin_dir);
	else
		set(&p->plugin_dir, "%.*s", (int)(slash > o->kubelet_socket ? slash - o->kubelet_socket : 1),
		    o->kubelet_socket);
	if (strlen(p->plugin_dir.s) == (size_t)(slash - o->kubelet_socket) &&
	    strncmp(p->plugin_dir.s, o->kubelet_socket, (size_t)(slash - o->kubelet_socket)) == 0)
		hm_fmt(p->kubelet_name, sizeof p->kubelet_name, "%s", slash + 1);
}

int agent_paths_init(struct agent_paths *p, const struct agent_options *o, struct hm_err *e)
{
	memset(p, 0, sizeof *p);
	set_folder(&p->state, o->state_dir);
	set(&p->claims, "%s/" HM_STATE_CLAIMS, p->state.s);
	set(&p->alloc, "%s/" HM_STATE_ALLOC, p->state.s);
	set(&p->lib, "%s/" HM_STATE_LIB, p->state.s);
	set(&p->counter, "%s/" HM_STATE_COUNTER, p->state.s);
	set(&p->node, "%s/" HM_STATE_NODE, p->state.s);
	set(&p->health, "%s/" HM_STATE_HEALTH, p->state.s);
	set(&p->runtime, "%s/" HM_STATE_RUNTIME, p->state.s);
	set_folder(&p->cdi, o->cdi_dir);
	set_plugin_dir(p, o);
	set(&p->checkpoint, "%s/" HM_CHECKPOINT_FILE, p->plugin_dir.s);
	set(&p->kubelet_socket, "%s", o->kubelet_socket);
	set(&p->pod_resources, "%s", o->pod_resources_socket);
	if (strlen(p->kubelet_socket.s) > SOCKET_PATH_BYTES)
		return hm_err_set(e, HM_EINVAL, "--kubelet-socket: %s is longer than the %d bytes of a socket path",
				  p->kubelet_socket.s, SOCKET_PATH_BYTES);
	return 0;
}

int agent_path_socket(const struct agent_paths *p, const char *name, struct agent_path *out, struct hm_err *e)
{
	set(out, "%s/%s", p->plugin_dir.s, name);
	if (strlen(out->s) > SOCKET_PATH_BYTES)
		return hm_err_set(e, HM_EINVAL, "--device-plugin-dir: %s is longer than the %d bytes of a socket path",
				  out->s, SOCKET_PATH_BYTES);
	return 0;
}

struct agent_path agent_path_alloc(const struct agent_paths *p, uint64_t number, const char *file)
{
	struct agent_path out;

	set(&out, "%s/%llu%s%s", p->alloc.s, (unsigned long long)number, file[0] != '\0' ? "/" : "", file);
	return out;
}

struct agent_path agent_path_spec(const struct agent_paths *p, uint64_t number)
{
	struct agent_path out;

	set(&out, "%s/" HM_CDI_FILE_PREFIX "%llu" HM_CDI_FILE_SUFFIX, p->cdi.s, (unsigned long long)number);
	return out;
}
