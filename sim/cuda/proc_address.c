#include "sim/cuda/proc_address.h"

#include <string.h>

#include "sim/cuda/state.h"

/* The first export of that name; proc_export_count where there is none. */
static size_t first_of(const char *name)
{
	size_t low = 0, high = proc_export_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (strcmp(proc_exports[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < proc_export_count && strcmp(proc_exports[low].name, name) == 0 ? low : proc_export_count;
}

/* The name's highest version not above the one asked for, among those of the stream class asked for; a name without
 * per-thread variants has one class only. */
static const struct proc_export *find(const char *name, int version, bool per_thread,
				      CUdriverProcAddressQueryResult *status)
{
	const struct proc_export *best = NULL;
	bool has_class = false;
	size_t first = first_of(name);

	for (size_t i = first; i < proc_export_count && strcmp(proc_exports[i].name, name) == 0; i++)
		has_class |= proc_exports[i].per_thread == per_thread;
	for (size_t i = first; i < proc_export_count && strcmp(proc_exports[i].name, name) == 0; i++) {
		const struct proc_export *e = &proc_exports[i];

		if (has_class && e->per_thread != per_thread)
			continue;
		if (e->version <= version && (best == NULL || e->version > best->version))
			best = e;
	}
	*status = best != NULL                 ? CU_GET_PROC_ADDRESS_SUCCESS
		  : first == proc_export_count ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
					       : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	return best;
}

/* A name that is not there is success with a NULL address; the status says why. */
static CUresult get(const char *name, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult result;

	if (name == NULL || out == NULL || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ||
	    version > cu_driver_version())
		return CUDA_ERROR_INVALID_VALUE;
	const struct proc_export *e =
		find(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &result);

	*out = NULL;
	if (e != NULL)
		memcpy(out, &e->address, sizeof *out); /* a function's address as a void * */
	if (status != NULL)
		*status = result;
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
	return get(name, out, version, flags, NULL);
}

CU_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
				       CUdriverProcAddressQueryResult *status)
{
	return get(name, out, version, flags, status);
}
