#include "sched/view/pod_hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "contract/hami.h"
#include "hami/entry_order.h"
#include "sched/view/budget_read.h"

void pod_hold_fini(struct pod_hold *h)
{
	pod_ask_fini(&h->ask);
	pod_devices_fini(&h->devices);
	mig_allocations_fini(&h->mig);
	free(h->shares);
	str_fini(&h->labels);
	signature_check_fini(&h->check);
	str_fini(&h->checked);
	*h = (struct pod_hold) { 0 };
}

/* ---- state */

static bool has_phase(const struct cJSON *pod, const char *phase)
{
	const char *text = pod_text(pod_member(pod, "status"), "phase");

	return text != NULL && strcmp(text, phase) == 0;
}

bool pod_has_ended(const struct cJSON *pod)
{
	return has_phase(pod, "Succeeded") || has_phase(pod, "Failed");
}

static bool has_run(const struct cJSON *statuses)
{
	const struct cJSON *item;

	cJSON_ArrayForEach(item, statuses)
	{
		const struct cJSON *state = pod_member(item, "state");

		if (pod_member(state, "running") != NULL || pod_member(state, "terminated") != NULL ||
		    pod_member(pod_member(item, "lastState"), "terminated") != NULL)
			return true;
	}
	return false;
}

bool pod_runs(const struct cJSON *pod)
{
	const struct cJSON *status = pod_member(pod, "status");

	return has_run(pod_member(status, "initContainerStatuses")) || has_run(pod_member(status, "containerStatuses"));
}

bool pod_is_told(const struct cJSON *pod)
{
	const char *node = pod_node(pod), *said = pod_annotation(pod, HAMI_POD_NODE);

	return node != NULL && said != NULL && strcmp(node, said) == 0;
}

bool pod_is_terminating(const struct cJSON *pod)
{
	return pod_text(pod_member(pod, "metadata"), "deletionTimestamp") != NULL;
}

/* ---- shares */

static bool add_share(struct pod_hold *h, const struct hold_share *s)
{
	return HM_PUSH(h->shares, h->hold.share_count, h->share_cap, *s);
}

static struct hold_made made_of(const struct mig_record *m)
{
	return (struct hold_made) { m->made ? m->mig_uuid : NULL, m->gpu_instance, m->compute_instance };
}

static bool add_entry(struct pod_hold *h, size_t entry, uint32_t container)
{
	const struct devices_entry *of = &h->devices.entries[entry];

	for (size_t i = 0; i < of->count; i++) {
		const struct device_share *d = &h->devices.shares[of->first + i];
		const struct mig_record *m = mig_allocations_find(&h->mig, (uint32_t)entry, (uint32_t)i);
		struct hold_share s = { container, d->uuid, d->memory_mib, d->cores, NULL, { 0, 0 }, { NULL, 0, 0 } };

		if (m != NULL && strcmp(m->gpu_uuid, d->uuid) == 0) {
			s.profile = m->profile;
			s.at = (struct mig_placement) { m->start, m->size };
			s.made = made_of(m);
		}
		if (d->uuid[0] != '\0' && !add_share(h, &s))
			return false;
	}
	return true;
}

/* A record of an instance that no entry has: who knows what for, but the place is taken. */
static bool add_lone_records(struct pod_hold *h, uint32_t container)
{
	for (size_t i = 0; i < h->mig.count; i++) {
		const struct mig_record *m = &h->mig.records[i];
		const struct hold_share s = { container,  m->gpu_uuid,           0,         0,
					      m->profile, { m->start, m->size }, made_of(m) };
		const struct devices_entry *of =
			m->container < h->devices.entry_count ? &h->devices.entries[m->container] : NULL;
		bool known = of != NULL && m->device < of->count &&
			     strcmp(h->devices.shares[of->first + m->device].uuid, m->gpu_uuid) == 0;

		if (!known && !add_share(h, &s))
			return false;
	}
	return true;
}

static int add_shares(struct pod_hold *h, struct hm_err *e)
{
	size_t n = h->ask.count, entries = h->devices.entry_count, init = 0;
	uint32_t *cards hm_auto_heap = calloc(n + 1, sizeof *cards);
	size_t *container_of hm_auto_heap = calloc(entries + 1, sizeof *container_of);

	if (cards == NULL || container_of == NULL)
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	for (size_t i = 0; i < n; i++) {
		cards[i] = h->ask.containers[i].count;
		init += h->ask.containers[i].kind != ASK_APP;
	}
	(void)entry_order(&h->devices, cards, n, init, container_of);
	for (size_t i = 0; i < entries; i++)
		if (entry_is_filled(&h->devices, i) && !add_entry(h, i, (uint32_t)container_of[i]))
			return hm_err_set(e, HM_ENOMEM, "read a pod");
	if (!add_lone_records(h, (uint32_t)(n + entries)))
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	h->hold.shares = h->shares;
	return 0;
}

/* ---- belief */

static int verify(const struct cJSON *pod, const struct pod_trust *trust, struct pod_hold *out, struct hm_err *e)
{
	const struct placement p = {
		.pod_uid = out->hold.uid,
		.node = out->hold.node,
		.time = pod_annotation(pod, HAMI_POD_TIME),
		.devices = pod_annotation(pod, HAMI_POD_ALLOCATED),
		.mig = pod_annotation(pod, HAMI_POD_MIG_ALLOCATIONS),
	};
	int err;

	if (trust->keys == NULL || (trust->warn && !signature_keys_are_wanted(trust->keys)))
		return 0;
	err = signature_check_begin(trust->keys, &p, pod_annotation(pod, HAMI_POD_SIGNATURE), &out->check,
				    &out->checked, e);
	if (err < 0 || trust->later)
		return err;
	err = signature_check_end(&out->check, str_text(&out->checked), out->checked.n, e);
	signature_check_fini(&out->check);
	return err;
}

static int read_devices(const struct cJSON *pod, struct pod_hold *h, struct hm_err *e)
{
	int err = devices_text_parse(pod_annotation(pod, HAMI_POD_ALLOCATED), &h->devices, e);

	if (err < 0)
		return hm_err_wrap(e, HAMI_POD_ALLOCATED);
	for (size_t i = 0; i < h->devices.share_count; i++)
		if (h->devices.shares[i].memory_mib < 0 || h->devices.shares[i].cores < 0)
			return hm_err_set(e, HM_EINVAL, HAMI_POD_ALLOCATED ": a negative amount");
	return 0;
}

/* Without its records a share of a card that is cut blocks that card (node_book.h): the devices' text says which. */
static int read_mig(const struct cJSON *pod, struct pod_hold *h, struct hm_err *e)
{
	struct hm_err why = { 0 };

	if (mig_text_parse(pod_annotation(pod, HAMI_POD_MIG_ALLOCATIONS), &h->mig, &why) == 0)
		return 0;
	if (why.code == HM_ENOMEM)
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	mig_allocations_fini(&h->mig);
	hm_err_wrap(&why, HAMI_POD_MIG_ALLOCATIONS);
	h->doubt = why;
	return 0;
}

void pod_hold_doubt(struct pod_hold *h, const struct hm_err *why)
{
	h->doubt = *why;
	h->hold.unreadable = true;
	h->hold.shares = NULL;
	h->hold.share_count = 0;
	signature_check_fini(&h->check);
}

static int read_held(const struct cJSON *pod, const struct pod_trust *trust, struct pod_hold *h, struct hm_err *e)
{
	struct hm_err why = { 0 };

	if (verify(pod, trust, h, &why) < 0) {
		if (why.code == HM_ENOMEM)
			return hm_err_set(e, HM_ENOMEM, "read a pod");
		hm_err_wrap(&why, POD_NOT_SIGNED);
		if (!trust->warn || why.code != HM_ENOTFOUND) {
			pod_hold_doubt(h, &why);
			return 0;
		}
		h->doubt = why;
	}
	if (read_devices(pod, h, &why) < 0) {
		if (why.code == HM_ENOMEM)
			return hm_err_set(e, HM_ENOMEM, "read a pod");
		pod_hold_doubt(h, &why);
		return 0;
	}
	if (read_mig(pod, h, e) < 0 || add_shares(h, e) < 0)
		return -HM_ENOMEM;
	if (h->hold.share_count == 0) {
		hm_err_set(&why, HM_EINVAL, HAMI_POD_ALLOCATED ": names no card for a pod that asks for some");
		pod_hold_doubt(h, &why);
	}
	return 0;
}

int pod_hold_read(const struct cJSON *pod, const struct pod_rules *rules, const struct pod_trust *trust,
		  struct pod_hold *out, struct hm_err *e)
{
	const char *node = pod_node(pod);
	bool told = pod_is_told(pod);
	struct hm_err why = { 0 };
	int err;

	*out = (struct pod_hold) { 0 };
	if (node == NULL || pod_has_ended(pod) || (!told && !pod_runs(pod)))
		return 0;
	err = pod_read_ask(pod, rules, &out->ask, &why);
	if (err == -HM_ENOMEM || err == -HM_EPROTO)
		return hm_err_set(e, why.code, "%s", why.msg);
	if (err == 0 && !pod_ask_any(&out->ask))
		return 0;
	pod_labels_read(pod, &out->labels);
	if (str_failed(&out->labels))
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	out->holds = true;
	out->hold = (struct hold) {
		.uid = out->ask.uid,
		.name_space = out->ask.name_space,
		.name = out->ask.name,
		.node = node,
		.state = pod_is_terminating(pod) ? HOLD_TERMINATING : HOLD_BOUND,
		.priority = out->ask.priority,
		.asks = out->ask.containers,
		.ask_count = out->ask.count,
		.labels = str_text(&out->labels),
	};
	out->doubt = why;
	if (told)
		return read_held(pod, trust, out, e);
	hm_err_set(&why, HM_ENOTFOUND,
		   "it runs with cards, and " HAMI_POD_NODE " does not say that they are of its node");
	pod_hold_doubt(out, &why);
	return 0;
}
