#include "agent/container/edits.h"

#include <stdlib.h>
#include <string.h>

#include "agent/container/driver_edits.h"
#include "agent/container/hami_cdi.h"
#include "base/str.h"
#include "contract/container.h"
#include "contract/host.h"

struct edits {
	const struct agent_paths *paths;
	const char *library;
	const struct hami_answer_config *hami; /* NULL: slices */
	struct driver_edits *driver;
};

int edits_new(const struct agent_options *o, const struct agent_paths *paths, const char *library,
	      const struct hami_answer_config *hami, struct edits **out, struct hm_err *e)
{
	hm_auto(edits) *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	*m = (struct edits) { .paths = paths, .library = library, .hami = hami };
	if (driver_edits_new(o, &m->driver, e) < 0)
		return -e->code;
	*out = HM_STEAL(m);
	return 0;
}

void edits_free(struct edits *m)
{
	if (m == NULL)
		return;
	driver_edits_free(m->driver);
	free(m);
}

const struct hami_answer_config *edits_hami(const struct edits *m)
{
	return m->hami;
}

struct driver_edits *edits_driver(struct edits *m)
{
	return m->driver;
}

/* ---- our part */

static int add_env(const struct claim *c, struct cdi_edits *out, struct hm_err *e)
{
	hm_auto_str vgpus = { 0 }, cards = { 0 };

	for (size_t i = 0; i < c->card_count; i++) {
		str_addf(&vgpus, "%s%s/%u", i > 0 ? "," : "", c->cards[i].uuid, c->cards[i].slot);
		str_addf(&cards, "%s%s", i > 0 ? "," : "",
			 c->cards[i].mig[0] != '\0' ? c->cards[i].mig : c->cards[i].uuid);
	}
	if (str_failed(&vgpus) || str_failed(&cards) || cdi_add_env(out, HM_ENV_VGPU_UUID, str_text(&vgpus)) < 0 ||
	    cdi_add_env(out, HM_ENV_VISIBLE_DEVICES, str_text(&cards)) < 0)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	return 0;
}

/* A MIG device keeps its limits itself: no libvgpu. The mount is what a running container is known by. */
static int add_mark(const struct edits *m, const struct claim *c, struct cdi_edits *out, struct hm_err *e)
{
	struct agent_path host = agent_path_alloc(m->paths, c->number, HM_ALLOC_USAGE);

	return cdi_add_mount(out, host.s, HM_CONTAINER_USAGE_DIR, false) < 0
		       ? hm_err_set(e, HM_ENOMEM, "container edits")
		       : 0;
}

/* LD_PRELOAD is left to the pod: the dynamic loader reads ld.so.preload whatever it says, and images set it for
 * allocators that they need. */
static int add_mounts(const struct edits *m, const struct claim *c, struct cdi_edits *out, struct hm_err *e)
{
	const struct {
		const char *file, *inside;
		bool read_only;
	} files[] = {
		{ HM_ALLOC_LIMITS, HM_CONTAINER_LIMITS, true },
		{ HM_ALLOC_USAGE, HM_CONTAINER_USAGE_DIR, false },
		{ HM_ALLOC_PRELOAD, HM_CONTAINER_PRELOAD, true },
	};
	size_t count = HM_COUNT(files) - (c->uncontrolled ? 1 : 0);

	if (claim_is_mig(c))
		return add_mark(m, c, out, e);
	if (cdi_add_mount(out, m->library, HM_CONTAINER_LIB, true) < 0)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	for (size_t i = 0; i < count; i++) {
		struct agent_path host = agent_path_alloc(m->paths, c->number, files[i].file);

		if (cdi_add_mount(out, host.s, files[i].inside, files[i].read_only) < 0)
			return hm_err_set(e, HM_ENOMEM, "container edits");
	}
	return 0;
}

/* ---- */

static int find_cards(const struct claim *c, const struct inventory *inv, const struct card **out, struct hm_err *e)
{
	for (size_t i = 0; i < c->card_count; i++) {
		out[i] = inventory_find(inv, c->cards[i].uuid);
		if (out[i] == NULL)
			return hm_err_set(e, HM_EAGAIN, "card %s is not on this node now", c->cards[i].uuid);
	}
	return 0;
}

static int add_card(struct edits *m, const struct claim *c, const struct card *const *cards, size_t i,
		    struct cdi_edits *out, struct hm_err *e)
{
	bool beside = false;

	if (c->cards[i].mig[0] == '\0')
		return driver_edits_card(m->driver, cards[i], out, e);
	for (size_t k = 0; k < i; k++)
		beside |= cards[k] == cards[i];
	return driver_edits_mig(m->driver, cards[i], &c->cards[i], beside, out, e);
}

static int add_driver(struct edits *m, const struct claim *c, const struct card *const *cards, struct cdi_edits *out,
		      struct hm_err *e)
{
	bool alone = m->hami == NULL || (m->hami->strategies & HAMI_LIST_NVIDIA) == 0;

	if (driver_edits_common(m->driver, alone, out, e) < 0)
		return -e->code;
	for (size_t i = 0; i < c->card_count; i++)
		if (add_card(m, c, cards, i, out, e) < 0)
			return -e->code;
	return 0;
}

/* The nodes of MIG devices, beside those that HAMi's answer has. */
static int add_mig_nodes(struct edits *m, const struct claim *c, const struct card *const *cards, struct cdi_edits *out,
			 struct hm_err *e)
{
	for (size_t i = 0; i < c->card_count; i++)
		if (c->cards[i].mig[0] != '\0' && driver_edits_mig(m->driver, cards[i], &c->cards[i], true, out, e) < 0)
			return -e->code;
	return 0;
}

/* HAMi's answer leaves the driver to NVIDIA's runtime, or to a CDI device that it names. */
static bool brings_driver(const struct edits *m, enum edits_way way)
{
	return m->hami == NULL || way == EDITS_SPEC;
}

int edits_make(struct edits *m, const struct claim *c, const struct inventory *inv, enum edits_way way,
	       struct cdi_edits *out, struct hm_err *e)
{
	const struct card *cards[HM_MAX_CARDS];
	int r;

	memset(out, 0, sizeof *out);
	r = find_cards(c, inv, cards, e);
	if (r == 0 && brings_driver(m, way))
		r = add_driver(m, c, cards, out, e);
	if (r == 0)
		r = m->hami == NULL ? add_env(c, out, e)
				    : hami_answer_edits(m->hami, c, cards, m->library, way == EDITS_SPEC, out, e);
	if (r == 0 && m->hami != NULL && way == EDITS_SPEC)
		r = hami_cdi_add_extras(m->hami, out, e);
	if (r == 0 && way == EDITS_ANSWER && m->hami != NULL && m->hami->pass_device_specs &&
	    (m->hami->strategies & HAMI_LIST_NVIDIA) != 0)
		r = add_mig_nodes(m, c, cards, out, e);
	if (r == 0)
		r = add_mounts(m, c, out, e);
	if (r < 0)
		cdi_edits_fini(out);
	return r;
}
