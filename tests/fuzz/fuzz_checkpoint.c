/* Whatever is taken has whole entries, and each of them is found again by its own set. */
#include "fuzz/fuzz.h"

#include "core/check.h"
#include "kubelet/checkpoint.h"

static void check(const struct checkpoint *c)
{
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct checkpoint_ours ours = { "hami.com/vgpu", "nvidia.com/mig-" };
	hm_auto(checkpoint) *strict = NULL;
	hm_auto(checkpoint) *all = NULL;
	struct hm_err e;

	if (checkpoint_parse_all((const char *)data, n, &ours, &all, &e) < 0)
		CHECK(checkpoint_parse((const char *)data, n, NULL, &strict, &e) < 0);
	else
		check(all);
	if (all != NULL && checkpoint_parse((const char *)data, n, NULL, &strict, &e) == 0) {
		check(strict);
		CHECK(strict->count == all->count);
	}
	return 0;
}
