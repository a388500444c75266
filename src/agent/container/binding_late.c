#include "agent/container/binding.h"

#include <stdlib.h>

#include "agent/container/container_dir.h"
#include "base/log.h"
#include "contract/hami.h"
#include "contract/names.h"
#include "core/fmt.h"

/* Only a help where the checkpoint cannot be read: without it the answer is as good. */
static void remember(const struct binding_tools *t, const struct claim *c)
{
	hm_auto_heap const char **ids = calloc(c->device_count + 1, sizeof *ids);
	struct hm_err why;

	if (ids == NULL)
		return;
	for (size_t i = 0; i < c->device_count; i++)
		ids[i] = c->devices[i];
	if (pending_add(t->pending, c->number, ids, c->device_count, t->now_ms, &why) < 0)
		log_warn("an Allocate call is not remembered", KV_ERR(&why));
}

/* Nothing on disk: the kubelet keeps the answer, and what is not there need not be cleaned up. */
static int late_allocate(const struct binding_tools *t, struct claim *c, struct binding_answer *out, struct hm_err *e)
{
	(void)e;
	*out = (struct binding_answer) { 0 };
	hm_fmt(out->names[0], sizeof out->names[0], HM_CDI_KIND "=" HM_CDI_DEVICE_PREFIX "%llu",
	       (unsigned long long)c->number);
	out->cdi_names[0] = out->names[0];
	out->dp.cdi_names = out->cdi_names;
	out->dp.cdi_count = 1;
	if (t->cdi_annotations) {
		hm_fmt(out->annotation_key, sizeof out->annotation_key, HAMI_CDI_ANNOTATION_PREFIX "hami-vgpu_%llu",
		       (unsigned long long)c->number);
		out->annotation = (struct dp_env) { out->annotation_key, out->names[0] };
		out->dp.annotations = &out->annotation;
		out->dp.annotation_count = 1;
	}
	remember(t, c);
	return 0;
}

static int late_start(const struct binding_tools *t, struct claim *c, struct hm_err *e)
{
	uint64_t number = c->number;
	struct cdi_edits edits;
	char device[32];
	int r;

	if (edits_make(t->edits, c, t->inventory, EDITS_SPEC, &edits, e) < 0)
		return -e->code;
	hm_fmt(device, sizeof device, HM_CDI_DEVICE_PREFIX "%llu", (unsigned long long)number);
	r = container_dir_write(t->paths, c, t->oversubscribe, e);
	if (r == 0)
		r = cdi_spec_install(agent_path_spec(t->paths, number).s, HM_CDI_KIND, device, &edits, e);
	if (r == 0)
		r = claims_put(t->claims, c, e); /* last: it says that the container may start */
	cdi_edits_fini(&edits);
	return r;
}

const struct binding binding_late = { "late", late_allocate, late_start };
