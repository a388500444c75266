#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

void *nvml_symbol(const char *name)
{
	static void *handle;

	if (handle == NULL) {
		int (*init)(void);

		handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);
		void *address = handle != NULL ? dlsym(handle, "nvmlInit_v2") : NULL;

		memcpy(&init, &address, sizeof init);
		if (address == NULL || init() != NVML_SUCCESS)
			check_not_available("NVML cannot be loaded");
	}
	return dlsym(handle, name);
}

struct nvml_device *nvml_device_of(const char *uuid)
{
	int (*by_uuid)(const char *, struct nvml_device **);
	struct nvml_device *out = NULL;
	void *address = nvml_symbol("nvmlDeviceGetHandleByUUID");

	memcpy(&by_uuid, &address, sizeof by_uuid);
	if (address == NULL || by_uuid(uuid, &out) != NVML_SUCCESS)
		check_not_available("NVML does not know %s", uuid);
	return out;
}

void nvml_uuid_of(int card, char out[static UUID_TEXT])
{
	CUuuid uuid;
	size_t n = (size_t)snprintf(out, UUID_TEXT, "GPU-");

	OK(cuInit(0));
	OK(cuDeviceGetUuid(&uuid, card));
	for (size_t i = 0; i < sizeof uuid.bytes; i++)
		n += (size_t)snprintf(out + n, UUID_TEXT - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid.bytes[i]);
}
