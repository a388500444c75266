/* HAMi's config.json changes what it may change, within bounds, and nothing where it is refused. */
#include "hami/node_config.h"

#include <string.h>

#include "core/check.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct device_config before = { .split_count = 10, .memory_scaling = 1, .core_scaling = 1 };
	struct device_config d = before;
	hm_auto(node_config) *c = NULL;
	struct hm_err e = { 0 };

	if (node_config_parse((const char *)data, n, "f", "n1", NULL, &d, &c, &e) < 0) {
		CHECK(c == NULL && e.code != 0 && e.msg[0] != '\0');
		CHECK(memcmp(&d, &before, sizeof d) == 0);
		return 0;
	}
	CHECK(c->found || memcmp(&d, &before, sizeof d) == 0);
	CHECK(d.split_count >= 1 && d.split_count <= DEVICE_CONFIG_MAX_SPLIT);
	CHECK(d.memory_scaling > 0 && d.core_scaling > 0);
	CHECK(strpbrk(c->operating_mode, " \n\"") == NULL);
	for (size_t i = 0; i < c->filter_uuid_count; i++)
		CHECK(c->filter_uuids[i] != NULL);
	return 0;
}
