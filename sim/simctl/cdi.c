/* dir/cdi/nvidia.json, as `nvidia-ctk cdi generate` would write it for this node: a device by index, by UUID and "all",
 * and edits of all of them. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "core/fmt.h"
#include "io/file.h"
#include "io/json.h"
#include "sim/simctl/simctl.h"

#if defined(__aarch64__)
#define CONTAINER_LIB_DIR "/usr/lib/aarch64-linux-gnu"
#else
#define CONTAINER_LIB_DIR "/usr/lib/x86_64-linux-gnu"
#endif

static bool add_text(struct cJSON *object, const char *key, const char *text)
{
	return cJSON_AddStringToObject(object, key, text) != NULL;
}

static struct cJSON *add_object(struct cJSON *list)
{
	struct cJSON *o = cJSON_CreateObject();

	if (o == NULL || !cJSON_AddItemToArray(list, o)) {
		cJSON_Delete(o);
		return NULL;
	}
	return o;
}

static bool add_node(struct cJSON *nodes, const char *dir, const char *name)
{
	char path[PATH_MAX], host[PATH_MAX];
	struct cJSON *o = add_object(nodes);

	hm_fmt(path, sizeof path, "/dev/%s", name);
	hm_fmt(host, sizeof host, "%s/dev/%s", dir, name);
	return o != NULL && add_text(o, "path", path) && add_text(o, "hostPath", host);
}

static bool add_mount(struct cJSON *mounts, const char *host, const char *container, bool read_only)
{
	static const char *const library[] = { "ro", "nosuid", "nodev", "rbind", "rprivate" };
	static const char *const shared[] = { "rw", "nosuid", "nodev", "noexec", "rbind", "rprivate" };
	struct cJSON *o = add_object(mounts), *options;

	if (o == NULL || !add_text(o, "hostPath", host) || !add_text(o, "containerPath", container))
		return false;
	options = read_only ? cJSON_CreateStringArray(library, HM_COUNT(library))
			    : cJSON_CreateStringArray(shared, HM_COUNT(shared));
	if (options == NULL || !cJSON_AddItemToObject(o, "options", options)) {
		cJSON_Delete(options);
		return false;
	}
	return true;
}

static bool add_library(struct cJSON *mounts, const char *lib_dir, const char *name)
{
	char host[PATH_MAX], container[PATH_MAX];

	hm_fmt(host, sizeof host, "%s/%s", lib_dir, name);
	hm_fmt(container, sizeof container, CONTAINER_LIB_DIR "/%s", name);
	/* One not built is not there to be mounted; programs that need it say so themselves. */
	return access(host, R_OK) < 0 || add_mount(mounts, host, container, true);
}

static bool add_common(struct cJSON *spec, const char *dir, const char *lib_dir)
{
	struct cJSON *edits = cJSON_AddObjectToObject(spec, "containerEdits");
	struct cJSON *env = edits != NULL ? cJSON_AddArrayToObject(edits, "env") : NULL;
	struct cJSON *nodes = edits != NULL ? cJSON_AddArrayToObject(edits, "deviceNodes") : NULL;
	struct cJSON *mounts = edits != NULL ? cJSON_AddArrayToObject(edits, "mounts") : NULL;
	char text[PATH_MAX];

	if (env == NULL || nodes == NULL || mounts == NULL)
		return false;
	hm_fmt(text, sizeof text, SIM_ENV_DIR "=%s", dir);
	return cJSON_AddItemToArray(env, cJSON_CreateString(text)) && add_node(nodes, dir, "nvidiactl") &&
	       add_node(nodes, dir, "nvidia-uvm") && add_node(nodes, dir, "nvidia-uvm-tools") &&
	       add_node(nodes, dir, "nvidia-modeset") && add_library(mounts, lib_dir, "libcuda.so.1") &&
	       add_library(mounts, lib_dir, "libnvidia-ml.so.1") && add_mount(mounts, dir, dir, false);
}

/* The device of one card; card NULL: of all. */
static bool add_device(struct cJSON *devices, const char *dir, const char *name, const struct sim_node *node,
		       const struct sim_card_info *card)
{
	struct cJSON *device = add_object(devices);
	struct cJSON *edits = device != NULL ? cJSON_AddObjectToObject(device, "containerEdits") : NULL;
	struct cJSON *nodes = edits != NULL ? cJSON_AddArrayToObject(edits, "deviceNodes") : NULL;
	char text[32];

	if (nodes == NULL || !add_text(device, "name", name))
		return false;
	for (unsigned i = 0; i < node->card_count; i++) {
		const struct sim_card_info *c = &node->cards[i].info;

		hm_fmt(text, sizeof text, "nvidia%u", c->minor);
		if ((card == NULL || card == c) && !add_node(nodes, dir, text))
			return false;
	}
	return true;
}

static bool add_devices(struct cJSON *spec, const char *dir, const struct sim_node *node)
{
	struct cJSON *devices = cJSON_AddArrayToObject(spec, "devices");
	char index[16];

	for (unsigned i = 0; devices != NULL && i < node->card_count; i++) {
		const struct sim_card_info *c = &node->cards[i].info;

		hm_fmt(index, sizeof index, "%u", i);
		if (!add_device(devices, dir, index, node, c) || !add_device(devices, dir, c->uuid, node, c))
			return false;
	}
	return devices != NULL && add_device(devices, dir, "all", node, NULL);
}

int simctl_write_cdi(const char *dir, const char *lib_dir, const struct sim_node *node, struct hm_err *e)
{
	hm_auto(cJSON) *spec = cJSON_CreateObject();
	hm_auto_heap char *text = NULL;
	char path[PATH_MAX];
	int r;

	if (spec != NULL && add_text(spec, "cdiVersion", "0.5.0") && add_text(spec, "kind", "nvidia.com/gpu") &&
	    add_devices(spec, dir, node) && add_common(spec, dir, lib_dir))
		text = cJSON_Print(spec);
	if (text == NULL)
		return hm_err_set(e, HM_ENOMEM, "CDI spec");
	hm_fmt(path, sizeof path, "%s/cdi", dir);
	r = file_mkdirs(path, 0755, e);
	if (r < 0)
		return r;
	hm_fmt(path, sizeof path, "%s/cdi/nvidia.json", dir);
	return file_replace(path, text, strlen(text), 0644, e);
}
