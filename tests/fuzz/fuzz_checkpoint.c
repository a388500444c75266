/* Whatever is taken has whole entries, and each of them is found again by its own set. */
#include "fuzz/fuzz.h"

#include "core/check.h"
#include "kubelet/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e;

	if (checkpoint_parse((const char *)data, n, NULL, &c, &e) < 0)
		return 0;
	for (size_t i = 0; i < c->count; i++) {
		const struct checkpoint_entry *entry = &c->entries[i], *found;
		size_t at = 0;

		CHECK(entry->pod_uid[0] != '\0' && entry->container[0] != '\0' && entry->resource[0] != '\0');
		do
			found = checkpoint_match(c, entry->resource, (const char *const *)entry->ids, entry->id_count,
						 &at);
		while (found != NULL && found != entry);
		CHECK(found == entry);
	}
	return 0;
}
