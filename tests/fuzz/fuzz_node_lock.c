/* A lock that is taken and has a pod can be written and read back, and its pod may release it. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/check.h"
#include "hami/node_lock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_str text = { 0 };
	hm_auto_str written = { 0 };
	struct node_lock lock, again;
	struct hm_err e;

	str_add_n(&text, data, n);
	(void)node_lock_releasable(str_text(&text), "ns", "pod");
	if (node_lock_parse(str_text(&text), &lock, &e) < 0)
		return 0;
	CHECK(node_lock_releasable(str_text(&text), lock.pod_namespace, lock.pod_name));
	if (lock.taken_s < 0 || lock.taken_s > 253402300799) /* the writer's years */
		return 0;
	node_lock_write(&lock, &written);
	CHECK(node_lock_parse(str_text(&written), &again, &e) == 0);
	CHECK(again.taken_s == lock.taken_s && strcmp(again.pod_name, lock.pod_name) == 0 &&
	      strcmp(again.pod_namespace, lock.pod_namespace) == 0);
	return 0;
}
