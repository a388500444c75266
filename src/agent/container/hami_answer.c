#include "agent/container/hami_answer.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "contract/container.h"
#include "contract/hami.h"
#include "core/fmt.h"

enum { PATH_BYTES = 512, NO_LIMIT_PERCENT = 100 };

/* One container's answer while it is made. */
struct maker {
	const struct hami_answer_config *a;
	const struct claim *claim;
	const struct card *const *cards;
	bool late;
	struct cdi_edits *out;
	struct hm_err *e;
};

static bool has(const struct hami_answer_config *a, enum hami_extra which)
{
	return (a->extras & which) != 0;
}

static int no_memory(struct hm_err *e)
{
	return hm_err_set(e, HM_ENOMEM, "container edits");
}

void hami_answer_device_id(const struct hami_answer_config *a, const struct card *card, char out[HM_UUID_BYTES])
{
	if (a->ids_by_index)
		hm_fmt(out, HM_UUID_BYTES, "%u", card->index);
	else
		hm_fmt(out, HM_UUID_BYTES, "%s", card->uuid);
}

static int env(struct maker *m, const char *name, const char *value)
{
	return cdi_add_env(m->out, name, value) < 0 ? no_memory(m->e) : 0;
}

static int env_i(struct maker *m, const char *name, size_t i, const char *value)
{
	char full[64];

	hm_fmt(full, sizeof full, "%s_%zu", name, i);
	return env(m, full, value);
}

static int mount(struct maker *m, const char *host, const char *inside, bool read_only)
{
	return cdi_add_mount(m->out, host, inside, read_only) < 0 ? no_memory(m->e) : 0;
}

/* ---- which cards: for NVIDIA's runtime */

/* The card's name, or that of the MIG device on it. */
static const char *visible_id(const struct hami_answer_config *a, const struct claim_card *held,
			      const struct card *card, char room[HM_UUID_BYTES])
{
	if (held->mig[0] != '\0')
		return held->mig;
	hami_answer_device_id(a, card, room);
	return room;
}

static int name_cards(struct maker *m)
{
	hm_auto_str list = { 0 };

	for (size_t i = 0; i < m->claim->card_count; i++) {
		char room[HM_UUID_BYTES];

		str_addf(&list, "%s%s", i > 0 ? "," : "", visible_id(m->a, &m->claim->cards[i], m->cards[i], room));
	}
	return str_failed(&list) ? no_memory(m->e) : env(m, HM_ENV_VISIBLE_DEVICES, str_text(&list));
}

static int mount_cards(struct maker *m)
{
	char inside[PATH_BYTES];

	for (size_t i = 0; i < m->claim->card_count; i++) {
		char room[HM_UUID_BYTES];

		hm_fmt(inside, sizeof inside, HAMI_VOLUME_MOUNT_DIR "/%s",
		       visible_id(m->a, &m->claim->cards[i], m->cards[i], room));
		if (mount(m, "/dev/null", inside, false) < 0)
			return -m->e->code;
	}
	if (has(m->a, HAMI_EXTRA_IMEX) && mount(m, "/dev/null", HAMI_VOLUME_MOUNT_DIR "/imex/0", false) < 0)
		return -m->e->code;
	return env(m, HM_ENV_VISIBLE_DEVICES, HAMI_VOLUME_MOUNT_DIR);
}

/* The value "void" tells NVIDIA's runtime to leave the container alone, whatever pod or image say: with CDI alone the
 * cards come by the spec. In an Allocate answer HAMi sets nothing then. */
static int add_visible(struct maker *m)
{
	const struct hami_answer_config *a = m->a;

	if ((a->strategies & HAMI_LIST_VOLUME_MOUNTS) != 0)
		return mount_cards(m);
	if ((a->strategies & HAMI_LIST_ENVVAR) == 0)
		return m->late ? env(m, HM_ENV_VISIBLE_DEVICES, "void") : 0;
	if (has(a, HAMI_EXTRA_IMEX) && env(m, HAMI_ENV_IMEX_CHANNELS, "0") < 0)
		return -m->e->code;
	return name_cards(m);
}

static int add_runtime_extras(struct maker *m)
{
	const struct {
		enum hami_extra which;
		const char *name;
	} extras[] = {
		{ HAMI_EXTRA_GDRCOPY, HAMI_ENV_GDRCOPY },
		{ HAMI_EXTRA_GDS, HAMI_ENV_GDS },
		{ HAMI_EXTRA_MOFED, HAMI_ENV_MOFED },
	};

	for (size_t i = 0; i < HM_COUNT(extras); i++)
		if (has(m->a, extras[i].which) && (m->a->strategies & HAMI_LIST_NVIDIA) != 0 &&
		    env(m, extras[i].name, HAMI_ENV_ENABLED) < 0)
			return -m->e->code;
	return 0;
}

/* ---- the limits, for who reads them in the environment; libvgpu obeys the limit file */

/* Cards in NVML's order, which is that of the indices inside the container, whatever the scheduler's order was. */
static void by_index(const struct maker *m, size_t order[HM_MAX_CARDS])
{
	for (size_t i = 0; i < m->claim->card_count; i++) {
		size_t at = i;

		for (; at > 0 && m->cards[order[at - 1]]->index > m->cards[i]->index; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static unsigned cores_of(const struct claim_card *c)
{
	return c->cores >= NO_LIMIT_PERCENT ? 0 : c->cores;
}

static bool cores_differ(const struct claim *c, bool *any_free)
{
	bool differ = false;

	*any_free = false;
	for (size_t i = 0; i < c->card_count; i++) {
		differ |= cores_of(&c->cards[i]) != cores_of(&c->cards[0]);
		*any_free |= cores_of(&c->cards[i]) == 0;
	}
	return differ;
}

/* A card's own variable counts unless it is 0, so that one card without a limit must not find one in the common
 * variable. Cards that are alike need the common one alone, which is all that HAMi ever sets. */
static int add_cores(struct maker *m, const size_t *order)
{
	const struct claim *c = m->claim;
	bool any_free, differ = cores_differ(c, &any_free);
	char text[16];

	hm_fmt(text, sizeof text, "%u", differ && any_free ? 0 : cores_of(&c->cards[0]));
	if (env(m, HM_ENV_CORES_LIMIT, text) < 0)
		return -m->e->code;
	for (size_t i = 0; differ && i < c->card_count; i++) {
		hm_fmt(text, sizeof text, "%u", cores_of(&c->cards[order[i]]));
		if (env_i(m, HM_ENV_CORES_LIMIT, i, text) < 0)
			return -m->e->code;
	}
	return 0;
}

static int add_limits(struct maker *m)
{
	size_t order[HM_MAX_CARDS] = { 0 };
	char text[64], cache[PATH_BYTES];

	by_index(m, order);
	for (size_t i = 0; i < m->claim->card_count; i++) {
		hm_fmt(text, sizeof text, "%llum", (unsigned long long)(m->claim->cards[order[i]].memory_bytes >> 20));
		if (env_i(m, HM_ENV_MEMORY_LIMIT, i, text) < 0)
			return -m->e->code;
	}
	if (m->claim->card_count > 0 && add_cores(m, order) < 0)
		return -m->e->code;
	if (m->claim->oversubscribe && env(m, HM_ENV_OVERSUBSCRIBE, "true") < 0)
		return -m->e->code;
	if (m->a->log_level != NULL && m->a->log_level[0] != '\0' &&
	    env(m, HAMI_ENV_LIBCUDA_LOG_LEVEL, m->a->log_level) < 0)
		return -m->e->code;
	if (m->a->disable_core_limit && env(m, HM_ENV_POLICY, "disable") < 0)
		return -m->e->code;
	if (m->a->hook_path == NULL)
		return 0;
	hm_fmt(cache, sizeof cache, "%s/" HAMI_HOOK_VGPU "/%s" HAMI_CACHE_SUFFIX, m->a->hook_path, m->claim->pod_uid);
	return env(m, HM_ENV_SHARED_CACHE, cache);
}

/* ---- HAMi's files */

/* HAMi mounts the second wherever it finds the first; a container with a mount of nothing would never start. */
static int add_license(struct maker *m)
{
	static const struct {
		const char *file, *inside;
	} files[] = {
		{ HAMI_HOOK_LICENSE, HAMI_CONTAINER_LICENSE },
		{ HAMI_HOOK_VALIDATOR, HAMI_CONTAINER_VALIDATOR },
	};
	char host[PATH_BYTES];

	for (size_t i = 0; i < HM_COUNT(files); i++) {
		hm_fmt(host, sizeof host, "%s/%s", m->a->hook_path, files[i].file);
		if (access(host, F_OK) < 0)
			return 0;
		if (mount(m, host, files[i].inside, true) < 0)
			return -m->e->code;
	}
	return 0;
}

/* The library once more where HAMi has it: programs that preload it by that name get the same file, which the loader
 * loads once. */
static int add_files(struct maker *m, const char *library)
{
	char inside[PATH_BYTES];

	if (m->a->hook_path == NULL)
		return 0;
	hm_fmt(inside, sizeof inside, "%s/" HAMI_HOOK_LIBRARY, m->a->hook_path);
	return mount(m, library, inside, true) < 0 ? -m->e->code : add_license(m);
}

/* ---- device nodes */

static int add_node(struct maker *m, const char *path, bool always)
{
	const char *root = m->a->dev_root != NULL && strcmp(m->a->dev_root, "/") != 0 ? m->a->dev_root : "";
	char host[PATH_BYTES];

	hm_fmt(host, sizeof host, "%s%s", root, path);
	if (!always && access(path, F_OK) < 0 && access(host, F_OK) < 0)
		return 0;
	return cdi_add_node(m->out, path, host, "rw") < 0 ? no_memory(m->e) : 0;
}

static int add_nodes(struct maker *m)
{
	static const char *const common[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
					      "/dev/nvidia-modeset" };
	char path[64];

	if (m->late || !m->a->pass_device_specs || (m->a->strategies & HAMI_LIST_NVIDIA) == 0)
		return 0;
	for (size_t i = 0; i < HM_COUNT(common); i++)
		if (add_node(m, common[i], false) < 0)
			return -m->e->code;
	for (size_t i = 0; i < m->claim->card_count; i++) {
		hm_fmt(path, sizeof path, "/dev/nvidia%u", m->cards[i]->minor);
		if (add_node(m, path, true) < 0)
			return -m->e->code;
	}
	return has(m->a, HAMI_EXTRA_IMEX) ? add_node(m, HAMI_DEV_IMEX_CHANNEL, true) : 0;
}

/* ---- */

int hami_answer_edits(const struct hami_answer_config *a, const struct claim *c, const struct card *const *cards,
		      const char *library, bool late, struct cdi_edits *out, struct hm_err *e)
{
	struct maker m = { .a = a, .claim = c, .cards = cards, .late = late, .out = out, .e = e };

	if (add_visible(&m) < 0 || add_runtime_extras(&m) < 0)
		return -e->code;
	/* A MIG device has its limits in itself: HAMi gives such a container the device and nothing else. */
	if (!claim_is_mig(c) && (add_limits(&m) < 0 || add_files(&m, library) < 0))
		return -e->code;
	if (add_nodes(&m) < 0)
		return -e->code;
	return 0;
}

size_t hami_answer_cdi_names(const struct hami_answer_config *a, const struct claim *c, const struct card *const *cards,
			     char (*names)[HAMI_ANSWER_NAME_BYTES])
{
	static const struct {
		enum hami_extra which;
		const char *class, *device;
	} extras[] = {
		{ HAMI_EXTRA_IMEX, HAMI_CDI_CLASS_IMEX, "0" },
		{ HAMI_EXTRA_GDRCOPY, HAMI_CDI_CLASS_GDRCOPY, HAMI_CDI_ALL },
		{ HAMI_EXTRA_GDS, HAMI_CDI_CLASS_GDS, HAMI_CDI_ALL },
		{ HAMI_EXTRA_MOFED, HAMI_CDI_CLASS_MOFED, HAMI_CDI_ALL },
	};
	size_t n = 0;

	if ((a->strategies & HAMI_LIST_CDI) == 0)
		return 0;
	for (size_t i = 0; i < c->card_count; i++) {
		char room[HM_UUID_BYTES];

		hm_fmt(names[n++], HAMI_ANSWER_NAME_BYTES, HAMI_CDI_VENDOR "/" HAMI_CDI_CLASS_GPU "=%s",
		       visible_id(a, &c->cards[i], cards[i], room));
	}
	for (size_t i = 0; i < HM_COUNT(extras); i++)
		if ((a->extra_specs & extras[i].which) != 0)
			hm_fmt(names[n++], HAMI_ANSWER_NAME_BYTES, HAMI_CDI_VENDOR "/%s=%s", extras[i].class,
			       extras[i].device);
	return n;
}
