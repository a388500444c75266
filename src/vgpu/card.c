/* Which card of the limit file a device is: by its UUID, as the driver says it. */
#include "core/fmt.h"
#include "vgpu/hooks.h"
#include "vgpu/lock.h"
#include "vgpu/state.h"

static bool same(const char *a, const char *b)
{
	return __builtin_strncmp(a, b, HM_UUID_BYTES) == 0;
}

static struct vgpu_card *find(struct vgpu *v, const char *uuid)
{
	uint32_t count = v->card_count;

	for (uint32_t i = 0; i < count; i++) {
		if (same(v->cards[i].limit.uuid, uuid))
			return &v->cards[i];
	}
	return NULL;
}

static struct vgpu_card *add(struct vgpu *v, const char *uuid, unsigned ordinal)
{
	uint64_t bytes = env_memory_of(&v->env, ordinal);
	struct vgpu_card *card;

	if (v->card_count == HM_MAX_CARDS)
		return NULL;
	card = &v->cards[v->card_count];
	hm_fmt(card->limit.uuid, sizeof card->limit.uuid, "%s", uuid);
	card->limit.memory_bytes = bytes != 0 ? bytes : REGION_MAX_BYTES;
	card->limit.cores = env_cores_of(&v->env, ordinal);
	card->region_card = v->map.r != NULL ? region_map_card(&v->map, &card->limit, true) : -1;
	if (card->region_card < 0)
		vgpu_trouble(v, "card %s does not fit into the region", uuid);
	v->card_count++;
	return card;
}

struct vgpu_card *vgpu_card_by_uuid(struct vgpu *v, const char *uuid, unsigned ordinal)
{
	struct vgpu_card *card = find(v, uuid);

	if (card != NULL || !v->from_env)
		return card;
	lock_take(&v->card_lock);
	card = find(v, uuid);
	if (card == NULL)
		card = add(v, uuid, ordinal);
	lock_release(&v->card_lock);
	return card;
}

/* As nvidia-smi -L and the limit file write it. */
static void uuid_text(const CUuuid *u, char *out)
{
	static const char digits[] = "0123456789abcdef";
	char *p = out + hm_fmt(out, HM_UUID_BYTES, "GPU-");

	for (unsigned i = 0; i < sizeof u->bytes; i++) {
		unsigned char b = (unsigned char)u->bytes[i];

		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = digits[b >> 4];
		*p++ = digits[b & 15];
	}
	*p = '\0';
}

static struct vgpu_card *look_up(struct vgpu *v, CUdevice device)
{
	struct vgpu_card *card;
	char uuid[HM_UUID_BYTES];
	CUuuid u;

	if (REAL(cuDeviceGetUuid_v2)(&u, device) != CUDA_SUCCESS && REAL(cuDeviceGetUuid)(&u, device) != CUDA_SUCCESS)
		return NULL;
	uuid_text(&u, uuid);
	card = vgpu_card_by_uuid(v, uuid, (unsigned)device);
	if (card == NULL)
		vgpu_trouble(v, "card %s is not in the limit file", uuid);
	v->card_of[device] = (int8_t)(card != NULL ? card - v->cards + 1 : VGPU_CARD_NONE);
	return card;
}

struct vgpu_card *vgpu_card_of(struct vgpu *v, CUdevice device)
{
	int number;

	if (device < 0 || device >= VGPU_DEVICES || v->mode != VGPU_ON)
		return NULL;
	number = atomic_load_explicit(&v->card_of[device], memory_order_relaxed);
	if (HM_LIKELY(number > 0))
		return &v->cards[number - 1];
	return number == VGPU_CARD_UNKNOWN ? look_up(v, device) : NULL;
}
