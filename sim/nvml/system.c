#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fmt.h"
#include "core/macros.h"
#include "sim/nvml/handle.h"

const char *nvmlErrorString(int result)
{
	static const char *const texts[] = {
		[NVML_SUCCESS] = "Success",
		[NVML_ERROR_UNINITIALIZED] = "Uninitialized",
		[NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
		[NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
		[NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
		[NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
		[NVML_ERROR_NOT_FOUND] = "Not Found",
		[NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
		[NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
		[NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
		[NVML_ERROR_TIMEOUT] = "Timeout",
		[NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
		[NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
		[NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
		[NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
		[NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
		[NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
		[NVML_ERROR_OPERATING_SYSTEM] = "GPU access blocked by the operating system",
		[NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver/library version mismatch",
		[NVML_ERROR_IN_USE] = "In use by another client",
		[NVML_ERROR_MEMORY] = "Insufficient Memory",
		[NVML_ERROR_NO_DATA] = "No data",
		[NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "vGPU ECC not supported",
		[NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
		[NVML_ERROR_FREQ_NOT_SUPPORTED] = "Requested frequency not supported",
		[NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
		[NVML_ERROR_DEPRECATED] = "The requested functionality has been deprecated",
		[NVML_ERROR_NOT_READY] = "System is not ready",
		[NVML_ERROR_GPU_NOT_FOUND] = "No GPUs were found",
		[NVML_ERROR_INVALID_STATE] = "Invalid state",
		[NVML_ERROR_RESET_TYPE_NOT_SUPPORTED] = "Reset type not supported",
	};

	if (result < 0 || (size_t)result >= HM_COUNT(texts) || texts[result] == NULL)
		return "Unknown Error";
	return texts[result];
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	const struct sim_node *n = NULL;
	int r = node_enter(__func__, &n);

	if (r == NVML_SUCCESS && version == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r == NVML_SUCCESS ? copy_text(n->driver_version, version, length) : r;
}

int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	const struct sim_node *n = NULL;
	int r = node_enter(__func__, &n);

	if (r == NVML_SUCCESS && version == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r == NVML_SUCCESS ? copy_text(n->nvml_version, version, length) : r;
}

static int cuda_version(const char *call, int *version)
{
	const struct sim_node *n = NULL;
	int r = node_enter(call, &n);

	if (r == NVML_SUCCESS && version == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*version = (int)n->cuda_version;
	return r;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
	return cuda_version(__func__, version);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	return cuda_version(__func__, version);
}

int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	const struct sim_node *n = NULL;
	int r = node_enter(__func__, &n);
	char path[32];
	ssize_t got;

	if (r != NVML_SUCCESS)
		return r;
	if (name == NULL || length == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	hm_fmt(path, sizeof path, "/proc/%u/exe", pid);
	got = readlink(path, name, length - 1);
	if (got < 0)
		return NVML_ERROR_NOT_FOUND;
	name[got] = '\0';
	return NVML_SUCCESS;
}
