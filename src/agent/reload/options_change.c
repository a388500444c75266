#include "agent/reload/options_change.h"

#include <string.h>

#include "agent/reload/selftest.h"
#include "contract/hami.h"
#include "hami/node_config.h"

/* Options whose readers look at them each time. All others are copied by somebody when the agent starts. */
static const char *const live[] = {
	"cores-per-device",
	"memory-mb-per-core",
	"slicing",
	"oversubscribe",
	"enable-topology",
	"device-split-count",
	"device-memory-scaling",
	"device-cores-scaling",
	"log-level",
	"v",
};

static bool is_live(const char *name)
{
	for (size_t i = 0; i < HM_COUNT(live); i++)
		if (strcmp(live[i], name) == 0)
			return true;
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_value(const struct option_spec *a, const struct option_spec *b)
{
	switch (a->kind) {
	case OPTION_BOOL: return *(bool *)a->value == *(bool *)b->value;
	case OPTION_MS:
	case OPTION_U64: return *(uint64_t *)a->value == *(uint64_t *)b->value;
	case OPTION_F64:
		return !(*(double *)a->value < *(double *)b->value || *(double *)a->value > *(double *)b->value);
	case OPTION_TEXT:
	case OPTION_CHOICE: return same_text(*(const char **)a->value, *(const char **)b->value);
	case OPTION_LIST:
		return strcmp(((struct option_list *)a->value)->text, ((struct option_list *)b->value)->text) == 0;
	}
	return false;
}

#define SWAP(a, b)                                                                                                     \
	do {                                                                                                           \
		__typeof__(a) swapped_ = (a);                                                                          \
		(a) = (b);                                                                                             \
		(b) = swapped_;                                                                                        \
	} while (0)

static void swap_value(const struct option_spec *a, const struct option_spec *b)
{
	switch (a->kind) {
	case OPTION_BOOL: SWAP(*(bool *)a->value, *(bool *)b->value); break;
	case OPTION_MS:
	case OPTION_U64: SWAP(*(uint64_t *)a->value, *(uint64_t *)b->value); break;
	case OPTION_F64: SWAP(*(double *)a->value, *(double *)b->value); break;
	case OPTION_TEXT:
	case OPTION_CHOICE: SWAP(*(const char **)a->value, *(const char **)b->value); break;
	case OPTION_LIST: SWAP(*(struct option_list *)a->value, *(struct option_list *)b->value); break;
	}
}

static void make_table(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT])
{
	agent_options_table(o, table);
	hami_options_table(&o->hami, table + AGENT_OWN_OPTION_COUNT);
}

/* ---- what only files say */

static bool same_filter(const struct node_config *a, const struct node_config *b)
{
	static const struct node_config none;

	a = a != NULL ? a : &none;
	b = b != NULL ? b : &none;
	if (a->filter_uuid_count != b->filter_uuid_count || a->filter_index_count != b->filter_index_count)
		return false;
	for (size_t i = 0; i < a->filter_uuid_count; i++)
		if (strcmp(a->filter_uuids[i], b->filter_uuids[i]) != 0)
			return false;
	for (size_t i = 0; i < a->filter_index_count; i++)
		if (a->filter_indices[i] != b->filter_indices[i])
			return false;
	return true;
}

static bool same_words(const char **a, size_t an, const char **b, size_t bn)
{
	bool same = an == bn;

	for (size_t i = 0; same && i < an; i++)
		same = strcmp(a[i], b[i]) == 0;
	return same;
}

static bool same_allowlist(const struct device_config *x, const struct device_config *y)
{
	static const struct mig_allowlist none;
	const struct mig_allowlist *a = x != NULL ? &x->mig : &none, *b = y != NULL ? &y->mig : &none;
	bool same = a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++) {
		const struct mig_allowed *p = &a->items[i], *q = &b->items[i];

		same = same_words(p->models, p->model_count, q->models, q->model_count) &&
		       same_words(p->profiles, p->profile_count, q->profiles, q->profile_count);
	}
	return same;
}

/* Between hami-core and a word that means the same, only what is published differs. */
static bool is_mig(const struct hami_options *h)
{
	return strcmp(h->operating_mode, HAMI_MODE_MIG) == 0;
}

struct difference {
	struct str *names;
	enum options_change change;
};

static void differs(struct difference *d, const char *name, enum options_change change)
{
	if (d->names->n > 0)
		str_addc(d->names, ' ');
	str_add(d->names, name);
	d->change = HM_MAX(d->change, change);
}

/* Some copy whether memory is oversubscribed. */
static enum options_change change_of(const struct option_spec *a, const struct option_spec *b)
{
	if (strcmp(a->name, "device-memory-scaling") == 0 && (*(double *)a->value > 1) != (*(double *)b->value > 1))
		return OPTIONS_RESTART;
	return is_live(a->name) ? OPTIONS_LIVE : OPTIONS_RESTART;
}

static void compare_files(const struct hami_options *a, const struct hami_options *b, struct difference *d)
{
	if (!same_text(a->operating_mode, b->operating_mode))
		differs(d, "operatingmode", is_mig(a) || is_mig(b) ? OPTIONS_RESTART : OPTIONS_LIVE);
	if (!same_text(a->libcuda_log_level, b->libcuda_log_level))
		differs(d, "libCudaLogLevel", OPTIONS_RESTART);
	if (a->preconfigured_memory_mib != b->preconfigured_memory_mib)
		differs(d, "preConfiguredDeviceMemory", OPTIONS_LIVE);
	if (!same_text(a->node_config_trouble, b->node_config_trouble))
		differs(d, "config.json", OPTIONS_LIVE);
	if (!same_filter(a->node, b->node))
		differs(d, "filterdevices", OPTIONS_LIVE);
	if (!same_allowlist(a->device, b->device))
		differs(d, "migProfileAllowlist", OPTIONS_RESTART);
}

enum options_change options_change_of(struct agent_options *old, struct agent_options *fresh, struct str *names)
{
	struct option_spec a[AGENT_OPTION_COUNT], b[AGENT_OPTION_COUNT];
	struct difference d = { names, OPTIONS_SAME };

	str_clear(names);
	make_table(old, a);
	make_table(fresh, b);
	for (size_t i = 0; i < AGENT_OPTION_COUNT; i++)
		if (!same_value(&a[i], &b[i]))
			differs(&d, a[i].name, change_of(&a[i], &b[i]));
	compare_files(&old->hami, &fresh->hami, &d);
	return d.change;
}

void options_change_swap(struct agent_options *old, struct agent_options *fresh)
{
	struct option_spec a[AGENT_OPTION_COUNT], b[AGENT_OPTION_COUNT];
	struct hami_options *x = &old->hami, *y = &fresh->hami;

	make_table(old, a);
	make_table(fresh, b);
	for (size_t i = 0; i < AGENT_OPTION_COUNT; i++)
		swap_value(&a[i], &b[i]);
	SWAP(x->operating_mode, y->operating_mode);
	SWAP(x->libcuda_log_level, y->libcuda_log_level);
	SWAP(x->preconfigured_memory_mib, y->preconfigured_memory_mib);
	SWAP(x->node_config_trouble, y->node_config_trouble);
	SWAP(x->node, y->node); /* device stays: of it only the allowlist is read, and that is no live change */
}

int options_change_read(const struct agent_options *old, struct agent_options *fresh, struct hm_err *e)
{
	struct option_spec table[AGENT_OPTION_COUNT];
	int r;

	agent_options_init(fresh, table);
	fresh->texts = old->texts;
	fresh->told = old->told;
	r = agent_options_read(fresh, table, old->argc, old->argv, e);
	if (r == OPTIONS_RUN)
		r = selftest_settle(fresh, e);
	if (r == 0 && fresh->hami.node_config_trouble != NULL && old->hami.node_config_trouble == NULL)
		r = hm_err_set(e, HM_EINVAL, "%s", fresh->hami.node_config_trouble);
	if (r < 0)
		options_change_fini(fresh);
	return r;
}

void options_change_fini(struct agent_options *fresh)
{
	fresh->texts = NULL;
	fresh->told = NULL;
	agent_options_fini(fresh);
}
