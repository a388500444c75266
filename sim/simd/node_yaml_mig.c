#include "sim/simd/node_yaml_mig.h"

#include <string.h>

#include "abi/nvml.h"
#include "core/macros.h"

static int read_starts(const struct json_at *at, struct sim_mig_profile *p, struct hm_err *e)
{
	struct json_at starts;
	int r = json_array(at, "starts", JSON_REQUIRED, &starts, e);

	if (r == 0 && (json_count(&starts) == 0 || json_count(&starts) > SIM_MIG_SLICES))
		return json_err(at, "starts", e, "1 to %d memory slices", SIM_MIG_SLICES);
	p->start_count = (uint32_t)json_count(&starts);
	for (size_t i = 0; r == 0 && i < p->start_count; i++) {
		struct json_at item = json_item(&starts, i);
		uint64_t start = 0;

		r = json_u64(&item, NULL, JSON_REQUIRED, 0, SIM_MIG_SLICES - p->size, &start, e);
		p->starts[i] = (uint8_t)start;
	}
	return r;
}

static int read_mig_profile(const struct json_at *at, struct sim_mig_profile *p, struct hm_err *e)
{
	static const char *const keys[] = { "name", "starts",       "id",       "profile_id", "slices", "count",
					    "sms",  "copy_engines", "decoders", "memory_mib", "size" };
	uint64_t v[9] = { 0 };
	int r = json_known(at, keys, HM_COUNT(keys), e);

	if (r == 0)
		r = json_copy(at, "name", JSON_REQUIRED, p->name, sizeof p->name, e);
	for (size_t i = 2; r == 0 && i < HM_COUNT(keys); i++)
		r = json_u64(at, keys[i], JSON_REQUIRED, 0, i == 9 ? 1 << 24 : 1000, &v[i - 2], e);
	if (r == 0 && (v[8] == 0 || v[8] > SIM_MIG_SLICES))
		return json_err(at, "size", e, "a card has %d memory slices", SIM_MIG_SLICES);
	p->size = (uint32_t)v[8];
	if (r == 0)
		r = read_starts(at, p, e);
	if (r < 0)
		return r;
	if (v[0] >= NVML_GPU_INSTANCE_PROFILE_COUNT)
		return json_err(at, "id", e, "is no NVML profile");
	p->id = (uint32_t)v[0];
	p->profile_id = (uint32_t)v[1];
	p->slices = (uint32_t)v[2];
	p->count = (uint32_t)v[3];
	p->sms = (uint32_t)v[4];
	p->copy_engines = (uint32_t)v[5];
	p->decoders = (uint32_t)v[6];
	p->memory_mib = v[7];
	return 0;
}

int node_yaml_mig_profiles(const struct json_at *model, struct sim_card_info *card, struct hm_err *e)
{
	struct json_at profiles;
	int r = json_array(model, "mig_profiles", JSON_OPTIONAL, &profiles, e);

	if (r < 0)
		return r;
	if (json_count(&profiles) > SIM_MAX_MIG_PROFILES)
		return json_err(model, "mig_profiles", e, "more than %d", SIM_MAX_MIG_PROFILES);
	card->mig_profile_count = (uint32_t)json_count(&profiles);
	card->mig_capable = card->mig_profile_count > 0;
	for (size_t i = 0; i < json_count(&profiles); i++) {
		struct json_at item = json_item(&profiles, i), profile;

		r = json_object(&item, NULL, JSON_REQUIRED, &profile, e);
		if (r == 0)
			r = read_mig_profile(&profile, &card->mig_profiles[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_mig_static(const struct json_at *at, struct sim_card_info *card, struct sim_mig_static *out,
			   struct hm_err *e)
{
	static const char *const keys[] = { "profile", "start" };
	const char *profile = NULL;
	uint64_t start = 0;
	int r = json_known(at, keys, HM_COUNT(keys), e);

	if (r < 0 || (r = json_text(at, "profile", JSON_REQUIRED, &profile, e)) < 0 ||
	    (r = json_u64(at, "start", JSON_REQUIRED, 0, SIM_MIG_SLICES - 1, &start, e)) < 0)
		return r;
	for (uint32_t i = 0; i < card->mig_profile_count; i++)
		if (strcmp(card->mig_profiles[i].name, profile) == 0) {
			*out = (struct sim_mig_static) { i, (uint32_t)start };
			return 0;
		}
	return json_err(at, "profile", e, "\"%.40s\" is none of the model's", profile);
}

int node_yaml_mig_instances(const struct json_at *at, struct sim_card_info *card, struct hm_err *e)
{
	struct json_at list;
	int r = json_array(at, "mig_instances", JSON_OPTIONAL, &list, e);

	if (r < 0)
		return r;
	if (json_count(&list) > SIM_MIG_INSTANCES || (json_count(&list) > 0 && card->mig_enabled == 0))
		return json_err(at, "mig_instances", e, "at most %d, and only with mig: true", SIM_MIG_INSTANCES);
	card->mig_static_count = (uint32_t)json_count(&list);
	for (size_t i = 0; i < card->mig_static_count; i++) {
		struct json_at item = json_item(&list, i), object;

		r = json_object(&item, NULL, JSON_REQUIRED, &object, e);
		if (r == 0)
			r = read_mig_static(&object, card, &card->mig_static[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}
