#include "views.h"

#include <string.h>

#include "books.h"
#include "check.h"
#include "nvml.h"

static void match_cuda(int card, size_t used)
{
	size_t free_bytes = 0, total = 0, device_total = 0;
	CUdevice current;
	CUcontext ctx = NULL;

	OK(cuDeviceTotalMem_v2(&device_total, card));
	HOLDS(device_total == check_limit(), "cuDeviceTotalMem shows %zu of %zu", device_total, check_limit());
	if (cuCtxGetCurrent(&ctx) != CUDA_SUCCESS || ctx == NULL || cuCtxGetDevice(&current) != CUDA_SUCCESS ||
	    current != card)
		return;
	OK(cuMemGetInfo_v2(&free_bytes, &total));
	HOLDS(total == check_limit(), "cuMemGetInfo shows a total of %zu, the limit is %zu", total, check_limit());
	HOLDS(total - free_bytes == used, "cuMemGetInfo shows %zu used, NVML %zu", total - free_bytes, used);
}

size_t views_used(int card)
{
	int (*v1)(struct nvml_device *, struct nvml_memory *);
	int (*v2)(struct nvml_device *, struct nvml_memory_v2 *);
	void *address_1 = nvml_symbol("nvmlDeviceGetMemoryInfo"),
	     *address_2 = nvml_symbol("nvmlDeviceGetMemoryInfo_v2");
	struct nvml_memory one = { 0 };
	struct nvml_memory_v2 two = { .version = NVML_MEMORY_V2 };
	char uuid[UUID_TEXT];

	if (check_bare())
		return books_held(card);
	nvml_uuid_of(card, uuid);
	memcpy(&v1, &address_1, sizeof v1);
	memcpy(&v2, &address_2, sizeof v2);
	OK(v1(nvml_device_of(uuid), &one));
	HOLDS(one.total == check_limit() && one.used + one.free == one.total, "NVML shows %llu used, %llu free of %llu",
	      one.used, one.free, one.total);
	if (address_2 != NULL) {
		OK(v2(nvml_device_of(uuid), &two));
		HOLDS(two.total == one.total && two.used == one.used && two.free == one.free,
		      "NVML's second version shows %llu used, %llu free of %llu; the first %llu of %llu", two.used,
		      two.free, two.total, one.used, one.total);
	}
	match_cuda(card, (size_t)one.used);
	return (size_t)one.used;
}

size_t views_match_books(int card)
{
	size_t used = views_used(card), held = books_held(card);

	HOLDS(check_same(held, used), "card %d: charged %zu KiB, the driver says %zu KiB", card, used / 1024,
	      held / 1024);
	return used;
}
