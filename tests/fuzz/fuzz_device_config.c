/* Whatever is taken for HAMi's device-config.yaml keeps within its bounds, and its MIG list is one that can be used. */
#include "hami/device_config.h"

#include <string.h>

#include "core/check.h"
#include "fuzz/fuzz.h"

static void check_mig(const struct mig_allowlist *mig)
{
	for (size_t i = 0; i < mig->count; i++) {
		CHECK(mig->items[i].model_count > 0 && mig->items[i].profile_count > 0);
		for (size_t k = 0; k < mig->items[i].model_count; k++)
			CHECK(mig->items[i].models[k][0] != '\0');
		for (size_t k = 0; k < mig->items[i].profile_count; k++)
			CHECK(strstr(mig->items[i].profiles[k], "g.") != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(device_config) *c = NULL;
	struct hm_err e = { 0 };

	if (device_config_parse((const char *)data, n, "f", NULL, &c, &e) < 0) {
		CHECK(c == NULL && e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	CHECK(c->split_count >= 1 && c->split_count <= DEVICE_CONFIG_MAX_SPLIT);
	CHECK(c->memory_scaling >= 0 && c->memory_scaling <= DEVICE_CONFIG_MAX_SCALING);
	CHECK(c->core_scaling >= 0 && c->core_scaling <= DEVICE_CONFIG_MAX_SCALING);
	CHECK(strchr(c->resource_count, '/') != NULL);
	CHECK(strpbrk(c->libcuda_log_level, " \n=") == NULL);
	check_mig(&c->mig);
	return 0;
}
