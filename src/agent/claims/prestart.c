#include "agent/claims/prestart.h"

#include <string.h>

#include "contract/container.h"
#include "contract/host.h"
#include "contract/names.h"
#include "core/fmt.h"
#include "core/num.h"

bool prestart_parse_name(const char *cdi_name, uint64_t *number)
{
	static const char prefix[] = HM_CDI_KIND "=" HM_CDI_DEVICE_PREFIX;

	return strncmp(cdi_name, prefix, sizeof prefix - 1) == 0 &&
	       num_u64_str(cdi_name + sizeof prefix - 1, UINT64_MAX / 2, number);
}

/* "<alloc_dir>/<number>/usage" */
static bool parse_usage(const char *path, const char *alloc_dir, uint64_t *number)
{
	static const char tail[] = "/" HM_ALLOC_USAGE;
	size_t dir = strlen(alloc_dir), n = strlen(path);

	return n > dir + 1 + sizeof tail - 1 && strncmp(path, alloc_dir, dir) == 0 && path[dir] == '/' &&
	       strcmp(path + n - (sizeof tail - 1), tail) == 0 &&
	       num_u64(path + dir + 1, n - dir - 1 - (sizeof tail - 1), UINT64_MAX / 2, number);
}

static bool number_in_names(const struct checkpoint_entry *entry, uint64_t *number)
{
	for (size_t i = 0; i < entry->cdi_count; i++)
		if (prestart_parse_name(entry->cdi_names[i], number))
			return true;
	return false;
}

bool prestart_entry_number(const struct checkpoint_entry *entry, const char *alloc_dir, uint64_t *number, bool *classic)
{
	const char *usage = checkpoint_mount_host(entry, HM_CONTAINER_USAGE_DIR);

	*classic = !number_in_names(entry, number);
	return !*classic || (usage != NULL && parse_usage(usage, alloc_dir, number));
}

bool prestart_is_listed(const struct checkpoint *c, const char *alloc_dir, uint64_t number)
{
	bool classic;
	uint64_t n;

	for (size_t i = 0; i < c->count; i++)
		if (prestart_entry_number(&c->entries[i], alloc_dir, &n, &classic) && n == number)
			return true;
	return false;
}

/* ---- who it is for */

struct targets {
	struct prestart_target *items;
	size_t count;
};

static int add_target(struct targets *t, uint64_t number, bool classic, const char *pod_uid, const char *container,
		      struct hm_err *e)
{
	struct prestart_target *to;

	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].number == number)
			return 0;
	if (t->count == PRESTART_MAX_TARGETS)
		return hm_err_set(e, HM_ELIMIT, "more than %d containers hold the same devices", PRESTART_MAX_TARGETS);
	to = &t->items[t->count++];
	to->number = number;
	to->classic = classic;
	hm_fmt(to->pod_uid, sizeof to->pod_uid, "%s", pod_uid);
	hm_fmt(to->container, sizeof to->container, "%s", container);
	return 0;
}

/* *others: there are entries, and none of them has an answer of ours. */
static int from_checkpoint(struct targets *t, const struct prestart_facts *f, const char *const *ids, size_t id_count,
			   bool *others, struct hm_err *e)
{
	const struct checkpoint_entry *entry;
	uint64_t number;
	bool classic;
	size_t at = 0;

	*others = false;
	while ((entry = checkpoint_match(f->checkpoint, f->resource, ids, id_count, &at)) != NULL) {
		*others = true;
		if (prestart_entry_number(entry, f->alloc_dir, &number, &classic) &&
		    add_target(t, number, classic, entry->pod_uid, entry->container, e) < 0)
			return -e->code;
	}
	*others &= t->count == 0;
	return 0;
}

static int from_memory(struct targets *t, const struct prestart_facts *f, const char *const *ids, size_t id_count,
		       struct hm_err *e)
{
	for (size_t i = 0; i < pending_count(f->pending); i++) {
		const struct pending_item *item = pending_at(f->pending, i);

		if (pending_has_set(item, ids, id_count) && add_target(t, item->number, false, "", "", e) < 0)
			return -e->code;
	}
	for (size_t i = 0; i < claims_count(f->claims); i++) {
		const struct claim *c = claims_at(f->claims, i);

		if (c->state != CLAIM_ENDED && claim_has_set(c, ids, id_count) &&
		    add_target(t, c->number, c->cdi[0] == '\0', c->pod_uid, c->container, e) < 0)
			return -e->code;
	}
	return 0;
}

int prestart_find(const struct prestart_facts *f, const char *const *ids, size_t id_count, struct prestart_target *out,
		  size_t *count, struct hm_err *e)
{
	struct targets t = { out, 0 };
	bool others = false;

	*count = 0;
	if (id_count == 0)
		return hm_err_set(e, HM_EINVAL, "a container without devices");
	if (f->checkpoint != NULL && from_checkpoint(&t, f, ids, id_count, &others, e) < 0)
		return -e->code;
	if (others && f->others_start)
		return 0;
	if (t.count == 0 && from_memory(&t, f, ids, id_count, e) < 0)
		return -e->code;
	*count = t.count;
	if (t.count > 0)
		return 0;
	if (f->checkpoint == NULL)
		return hm_err_set(
			e, HM_EAGAIN,
			"cannot tell which container gets %s%s: %s; and no Allocate call for it is remembered", ids[0],
			id_count > 1 ? " and others" : "", f->checkpoint_trouble);
	return hm_err_set(e, HM_EAGAIN,
			  "cannot tell which container gets %s%s: the kubelet's checkpoint has none with exactly these "
			  "devices; if this pod was allocated by another plugin, delete it",
			  ids[0], id_count > 1 ? " and others" : "");
}

/* ---- whether it may start */

static bool is_target(const struct claim *c, const struct prestart_target *targets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (c->number == targets[i].number ||
		    (c->pod_uid[0] != '\0' && strcmp(c->pod_uid, targets[i].pod_uid) == 0))
			return true;
	return false;
}

static const char *shared_id(const struct claim *c, const char *const *ids, size_t id_count)
{
	for (size_t i = 0; i < id_count; i++)
		if (claim_has_device(c, ids[i]))
			return ids[i];
	return NULL;
}

static int held_by(const struct claim *c, const char *id, struct hm_err *e)
{
	bool named = c->pod_name[0] != '\0';

	return hm_err_set(
		e, HM_EAGAIN,
		"slot %s is still held by pod %s%s%s (UID %s), container %s, vGPU %llu; this container starts "
		"when that one has ended",
		id, c->pod_namespace, named ? "/" : "", named ? c->pod_name : "of unknown name",
		c->pod_uid[0] != '\0' ? c->pod_uid : "unknown", c->container[0] != '\0' ? c->container : "unknown",
		(unsigned long long)c->number);
}

int prestart_check_holders(const struct prestart_facts *f, const char *const *ids, size_t id_count,
			   const struct prestart_target *targets, size_t count,
			   bool (*alive)(const struct claim *c, void *arg), void *arg, struct hm_err *e)
{
	for (size_t i = 0; i < claims_count(f->claims); i++) {
		const struct claim *c = claims_at(f->claims, i);
		const char *id;

		if (c->state == CLAIM_ENDED || is_target(c, targets, count))
			continue;
		id = shared_id(c, ids, id_count);
		if (id == NULL)
			continue;
		if ((f->checkpoint != NULL && prestart_is_listed(f->checkpoint, f->alloc_dir, c->number)) ||
		    alive(c, arg))
			return held_by(c, id, e);
	}
	return 0;
}
