#include "sched/bind/bind_marks.h"

#include <string.h>

#include "base/array.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/devices_text.h"
#include "hami/mig_text.h"

void bind_marks_fini(struct bind_marks *m)
{
	str_fini(&m->devices);
	str_fini(&m->mig);
	str_fini(&m->signature);
}

static bool add_record(struct mig_allocations *m, const struct hold_share *s, size_t device)
{
	struct mig_record r = { .container = s->container, .device = (uint32_t)device };

	if (s->at.size == 0)
		return true;
	r.start = s->at.start;
	r.size = s->at.size;
	hm_fmt(r.gpu_uuid, sizeof r.gpu_uuid, "%s", s->uuid);
	hm_fmt(r.profile, sizeof r.profile, "%s", s->profile != NULL ? s->profile : "");
	return HM_PUSH(m->records, m->count, m->cap, r);
}

static bool add_share(struct pod_devices *d, const struct hold_share *s)
{
	struct device_share share = { .type = HAMI_DEVICE_TYPE, .memory_mib = s->memory_mib, .cores = s->cores };

	hm_fmt(share.uuid, sizeof share.uuid, "%s", s->uuid);
	return HM_PUSH(d->shares, d->share_count, d->share_cap, share);
}

/* Shares come in the order of containers. */
static int write_texts(const struct holding *h, struct bind_marks *out, struct hm_err *e)
{
	hm_auto_pod_devices d = { 0 };
	hm_auto_mig_allocations m = { 0 };
	size_t next = 0;

	for (size_t i = 0; i < h->container_count; i++) {
		struct devices_entry entry = { d.share_count, 0 };

		for (; next < h->share_count; next++, entry.count++) {
			struct hold_share s = cluster_holding_share(h, next);

			if (s.container != i)
				break;
			if (!add_share(&d, &s) || !add_record(&m, &s, entry.count))
				return hm_err_set(e, HM_ENOMEM, "out of memory");
		}
		if (!HM_PUSH(d.entries, d.entry_count, d.entry_cap, entry))
			return hm_err_set(e, HM_ENOMEM, "out of memory");
	}
	devices_text_write(&d, &out->devices);
	if (m.count > 0)
		mig_text_write(&m, &out->mig);
	if (str_failed(&out->devices) || str_failed(&out->mig))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	return next == h->share_count ? 0 : hm_err_set(e, HM_EINTERNAL, "a share of no container");
}

static void add(struct bind_marks *m, const char *key, const char *value)
{
	m->values[m->count++] = (struct kube_patch_value) { key, value };
}

int bind_marks_make(const struct holding *h, const struct signature_keys *keys, uint64_t wall_ms,
		    struct bind_marks *out, struct hm_err *e)
{
	const char *node = cluster_holding_node(h);
	struct placement p = { .pod_uid = h->uid, .node = node };
	int err;

	*out = (struct bind_marks) { 0 };
	hm_fmt(out->time, sizeof out->time, "%llu", (unsigned long long)(wall_ms / 1000));
	err = write_texts(h, out, e);
	if (err < 0)
		return err;
	p.time = out->time;
	p.devices = str_text(&out->devices);
	p.mig = out->mig.n > 0 ? str_text(&out->mig) : NULL;
	err = keys != NULL ? signature_sign(keys, &p, &out->signature, e) : 0;
	if (err < 0)
		return err;
	add(out, HAMI_POD_NODE, node);
	add(out, HAMI_POD_TIME, out->time);
	add(out, HAMI_POD_TO_ALLOCATE, p.devices);
	add(out, HAMI_POD_ALLOCATED, p.devices);
	add(out, HAMI_POD_BIND_PHASE, HAMI_PHASE_ALLOCATING);
	add(out, HAMI_POD_BIND_TIME, out->time);
	if (p.mig != NULL)
		add(out, HAMI_POD_MIG_ALLOCATIONS, p.mig);
	if (keys != NULL)
		add(out, HAMI_POD_SIGNATURE, str_text(&out->signature));
	return 0;
}
