#include "gpu/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char default_library[] = "libnvidia-ml.so.1";
static const char default_sysfs[] = "/sys/bus/pci/devices";

const char *driver_error_text(const struct gpu_driver *d, int result)
{
	const char *text = NULL;

	if (result == NVML_ERROR_FUNCTION_NOT_FOUND)
		return "Function Not Found";
	if (d->nvmlErrorString != NULL)
		text = d->nvmlErrorString(result);
	return text == NULL ? "an error without a text" : text;
}

static int code_of(int result)
{
	switch (result) {
	case NVML_ERROR_NOT_FOUND:
	case NVML_ERROR_GPU_NOT_FOUND: return HM_ENOTFOUND;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND: return HM_EUNSUPPORTED;
	case NVML_ERROR_NO_PERMISSION: return HM_EPERM;
	case NVML_ERROR_TIMEOUT:
	case NVML_ERROR_IN_USE:
	case NVML_ERROR_NOT_READY: return HM_EAGAIN;
	case NVML_ERROR_MEMORY: return HM_ENOMEM;
	default: return HM_EIO;
	}
}

int driver_error(const struct gpu_driver *d, int result, const char *call, struct hm_err *e)
{
	return hm_err_set(e, code_of(result), "%s: NVML says %s (%d)", call, driver_error_text(d, result), result);
}

int driver_card(struct gpu_driver *d, const char *uuid, struct nvml_device **out, struct hm_err *e)
{
	int result = d->nvmlDeviceGetHandleByUUID(uuid, out);

	if (result == NVML_SUCCESS)
		return 0;
	/* An UUID that NVML cannot even read names no card. */
	if (result == NVML_ERROR_NOT_FOUND || result == NVML_ERROR_INVALID_ARGUMENT)
		return hm_err_set(e, HM_ENOTFOUND, "no GPU %s", uuid);
	driver_error(d, result, "nvmlDeviceGetHandleByUUID", e);
	return hm_err_wrap(e, "GPU %s", uuid);
}

static int find_calls(struct gpu_driver *d, const char *path, struct hm_err *e)
{
	const struct {
		const char *name;
		bool core;
		void **to;
	} calls[] = {
#define X(call, core) { #call, core, (void **)&d->call },
#include "gpu/nvml_calls.def"
#undef X
	};

	for (size_t i = 0; i < HM_COUNT(calls); i++) {
		*calls[i].to = dlsym(d->library, calls[i].name);
		if (*calls[i].to == NULL && calls[i].core)
			return hm_err_set(e, HM_EUNSUPPORTED, "%s has no %s: no NVML, or one older than 2013", path,
					  calls[i].name);
	}
	return 0;
}

static int initialise(struct gpu_driver *d, const char *path, struct hm_err *e)
{
	int result = d->nvmlInit_v2();

	if (result == NVML_SUCCESS) {
		d->initialised = true;
		return 0;
	}
	return hm_err_set(e, result == NVML_ERROR_NO_PERMISSION ? HM_EPERM : HM_EAGAIN,
			  "%s: nvmlInit: NVML says %s (%d)", path, driver_error_text(d, result), result);
}

int gpu_driver_open(const char *library_path, struct gpu_driver **out, struct hm_err *e)
{
	const char *path = library_path == NULL ? default_library : library_path;
	hm_auto(gpu_driver) *d = calloc(1, sizeof *d);
	int r;

	if (d == NULL)
		return hm_err_set(e, HM_ENOMEM, "driver");
	d->sysfs = strdup(default_sysfs);
	if (d->sysfs == NULL)
		return hm_err_set(e, HM_ENOMEM, "driver");
	d->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (d->library == NULL) {
		const char *why = dlerror(); /* begins with the path */

		return hm_err_set(e, HM_ENOTFOUND, "cannot load %s", why == NULL ? path : why);
	}
	r = find_calls(d, path, e);
	if (r == 0)
		r = initialise(d, path, e);
	if (r < 0)
		return r;
	*out = HM_STEAL(d);
	return 0;
}

int gpu_driver_set_sysfs(struct gpu_driver *d, const char *root, struct hm_err *e)
{
	char *copy = strdup(root);

	if (copy == NULL)
		return hm_err_set(e, HM_ENOMEM, "driver");
	free(d->sysfs);
	d->sysfs = copy;
	return 0;
}

void gpu_driver_close(struct gpu_driver *d)
{
	if (d == NULL)
		return;
	driver_free_events(d);
	if (d->initialised)
		(void)d->nvmlShutdown(); /* nothing to do about its failure */
	if (d->library != NULL)
		dlclose(d->library);
	free(d->sysfs);
	free(d);
}
