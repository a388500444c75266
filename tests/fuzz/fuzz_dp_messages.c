/* Every request message on the same bytes; the first byte picks. */
#include "fuzz/fuzz.h"
#include <string.h>

#include "core/check.h"
#include "kubelet/messages.h"

static void allocate(const uint8_t *data, size_t n)
{
	pb_auto void *m = NULL;
	hm_auto_heap struct dp_container_request *r = NULL;
	struct hm_err e;
	size_t count;

	if (message_read_allocate(data, n, &m, &r, &count, &e) < 0)
		return;
	CHECK(count >= 1 && count <= PB_MAX_CONTAINERS);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < r[i].count; k++)
			CHECK(strlen(r[i].ids[k]) <= PB_MAX_NAME_BYTES);
	}
}

static void preferred(const uint8_t *data, size_t n)
{
	pb_auto void *m = NULL;
	hm_auto_heap struct dp_preferred_request *r = NULL;
	struct hm_err e;
	size_t count;

	if (message_read_preferred(data, n, &m, &r, &count, &e) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		CHECK(r[i].size >= 1 && (uint64_t)r[i].size <= r[i].available_count &&
		      r[i].must_count <= (uint64_t)r[i].size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	pb_auto void *m = NULL;
	struct dp_container_request r;
	struct hm_err e;

	if (n == 0)
		return 0;
	if (data[0] % 3 == 0)
		allocate(data + 1, n - 1);
	else if (data[0] % 3 == 1)
		preferred(data + 1, n - 1);
	else if (message_read_pre_start(data + 1, n - 1, &m, &r, &e) == 0)
		CHECK(r.count <= PB_MAX_IDS);
	return 0;
}
