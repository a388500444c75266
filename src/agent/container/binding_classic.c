#include "agent/container/binding.h"

#include <stdlib.h>

#include "agent/container/container_dir.h"
#include "base/str.h"
#include "contract/hami.h"
#include "core/fmt.h"

/* CDI hooks have no place in an Allocate answer; with classic binding NVIDIA's runtime does what they do. */
static int fill_answer(struct binding_answer *out, struct hm_err *e)
{
	const struct cdi_edits *from = &out->edits;

	out->envs = calloc(from->env_count + 1, sizeof *out->envs);
	out->mounts = calloc(from->mount_count + 1, sizeof *out->mounts);
	out->nodes = calloc(from->node_count + 1, sizeof *out->nodes);
	if (out->envs == NULL || out->mounts == NULL || out->nodes == NULL)
		return hm_err_set(e, HM_ENOMEM, "Allocate answer");
	for (size_t i = 0; i < from->env_count; i++)
		out->envs[i] = (struct dp_env) { from->envs[i].name, from->envs[i].value };
	for (size_t i = 0; i < from->mount_count; i++) {
		const struct cdi_mount *m = &from->mounts[i];
		bool read_only = false;

		for (size_t k = 0; k < m->option_count; k++)
			read_only |= m->options[k][0] == 'r' && m->options[k][1] == 'o' && m->options[k][2] == '\0';
		out->mounts[i] = (struct dp_mount) { m->container_path, m->host_path, read_only };
	}
	for (size_t i = 0; i < from->node_count; i++) {
		const struct cdi_node *n = &from->nodes[i];

		out->nodes[i] = (struct dp_node) { n->path, n->host_path != NULL ? n->host_path : n->path,
						   n->permissions != NULL ? n->permissions : "rw" };
	}
	out->dp = (struct dp_container_answer) { out->envs,         from->env_count, out->mounts,
						 from->mount_count, out->nodes,      from->node_count };
	return 0;
}

/* Random in HAMi's; the number is as good, and the same in a repeated answer. */
static int annotate(const struct hami_answer_config *hami, uint64_t number, struct binding_answer *out, size_t count,
		    struct hm_err *e)
{
	hm_auto_str names = { 0 };

	for (size_t i = 0; i < count; i++)
		str_addf(&names, "%s%s", i > 0 ? "," : "", out->names[i]);
	out->annotation_value = str_take(&names);
	if (out->annotation_value == NULL)
		return hm_err_set(e, HM_ENOMEM, "Allocate answer");
	hm_fmt(out->annotation_key, sizeof out->annotation_key, "%s" HAMI_CDI_ANNOTATION_NAME "%llu",
	       hami->annotation_prefix, (unsigned long long)number);
	out->annotation = (struct dp_env) { out->annotation_key, out->annotation_value };
	out->dp.annotations = &out->annotation;
	out->dp.annotation_count = 1;
	return 0;
}

/* HAMi's own CDI devices, where a strategy says so. The edits are made: the cards are there. */
static int name_devices(const struct binding_tools *t, const struct claim *c, struct binding_answer *out,
			struct hm_err *e)
{
	const struct hami_answer_config *hami = edits_hami(t->edits);
	const struct card *cards[HM_MAX_CARDS];
	size_t count = 0;

	for (size_t i = 0; i < c->card_count; i++)
		cards[i] = inventory_find(t->inventory, c->cards[i].uuid);
	if (hami != NULL)
		count = hami_answer_cdi_names(hami, c, cards, out->names);
	if (count == 0)
		return 0;
	if ((hami->strategies & HAMI_LIST_CDI_CRI) != 0) {
		for (size_t i = 0; i < count; i++)
			out->cdi_names[i] = out->names[i];
		out->dp.cdi_names = out->cdi_names;
		out->dp.cdi_count = count;
	}
	return (hami->strategies & HAMI_LIST_CDI_ANNOTATIONS) != 0 ? annotate(hami, c->number, out, count, e) : 0;
}

/* The mounts must exist when the kubelet makes the container, and no name ties it to its number later: all is written
 * now. */
static int classic_allocate(const struct binding_tools *t, struct claim *c, struct binding_answer *out,
			    struct hm_err *e)
{
	uint64_t number = c->number;
	struct hm_err ignored;

	*out = (struct binding_answer) { 0 };
	if (edits_make(t->edits, c, t->inventory, EDITS_ANSWER, &out->edits, e) < 0)
		return -e->code;
	if (fill_answer(out, e) < 0 || name_devices(t, c, out, e) < 0 || claims_put(t->claims, c, e) < 0 ||
	    container_dir_write(t->paths, claims_find(t->claims, number), t->oversubscribe, e) < 0) {
		binding_answer_fini(out);
		if (binding_remove(t->paths, t->claims, number, &ignored) < 0)
			hm_err_wrap(e, "(%s)", ignored.msg);
		return -e->code;
	}
	return 0;
}

/* A MIG device that was just made has its CDI device when it has been scanned. */
static int need_named(const struct binding_tools *t, const struct claim *c, struct hm_err *e)
{
	const struct hami_answer_config *hami = edits_hami(t->edits);

	for (size_t i = 0; hami != NULL && (hami->strategies & HAMI_LIST_CDI) != 0 && i < c->card_count; i++) {
		const struct card *card = inventory_find(t->inventory, c->cards[i].uuid);

		if (c->cards[i].mig[0] != '\0' &&
		    (card == NULL || mig_find_device(&card->mig, c->cards[i].mig) == NULL))
			return hm_err_set(e, HM_EAGAIN, "MIG device %s is not seen yet", c->cards[i].mig);
	}
	return 0;
}

static int classic_start(const struct binding_tools *t, struct claim *c, struct hm_err *e)
{
	if (need_named(t, c, e) < 0 || container_dir_write(t->paths, c, t->oversubscribe, e) < 0)
		return -e->code;
	return claims_put(t->claims, c, e);
}

const struct binding binding_classic = { "classic", classic_allocate, classic_start };
