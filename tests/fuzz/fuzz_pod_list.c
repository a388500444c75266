/* Whatever is taken has whole names. The first byte picks the resource. */
#include <string.h>

#include "core/check.h"
#include "fuzz/fuzz.h"
#include "kubelet/pb.h"
#include "kubelet/pod_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	pod_list_auto struct pod_list l = { 0 };
	struct hm_err e = { 0 };

	if (n == 0)
		return 0;
	if (pod_list_read(data + 1, n - 1, data[0] % 2 == 0 ? "hami.com/vgpu" : "r", &l, &e) < 0) {
		CHECK(e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	for (size_t i = 0; i < l.count; i++) {
		const struct pod_resources_container *c = &l.containers[i];

		CHECK(pb_name_ok(c->pod) && pb_name_ok(c->pod_namespace) && pb_name_ok(c->container));
		CHECK(c->id_count == 0 || c->ids != NULL);
		for (size_t k = 0; k < c->id_count; k++)
			CHECK(pb_name_ok(c->ids[k]));
	}
	return 0;
}
