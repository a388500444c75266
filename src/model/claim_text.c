#include "model/claim_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/record.h"

enum { VERSION = 2 };

static const char magic[] = "hami-vgpu-claim";
static const char *const state_names[] = { "allocated", "active", "ended" };
static const char *const policy_names[] = { "default", "force", "disable" };

const char *claim_state_name(enum claim_state state)
{
	return (size_t)state < HM_COUNT(state_names) ? state_names[state] : "unknown";
}

const char *claim_policy_name(enum claim_policy policy)
{
	return (size_t)policy < HM_COUNT(policy_names) ? policy_names[policy] : "unknown";
}

bool claim_policy_of(const char *name, enum claim_policy *out)
{
	for (size_t i = 0; i < HM_COUNT(policy_names); i++) {
		if (strcmp(name, policy_names[i]) == 0) {
			*out = (enum claim_policy)i;
			return true;
		}
	}
	return false;
}

void claim_fini(struct claim *c)
{
	free(c->devices);
	c->devices = NULL;
	c->device_count = 0;
}

bool claim_is_mig(const struct claim *c)
{
	return c->card_count > 0 && c->cards[0].mig[0] != '\0';
}

static void write_text(struct str *out, const char *key, const char *value)
{
	str_addf(out, "%s=", key);
	str_add_escaped(out, value, strlen(value));
	str_addc(out, '\n');
}

static void write_card(struct str *out, const struct claim_card *card)
{
	str_addf(out, "card=%s memory=%llu cores=%u slot=%u", card->uuid, (unsigned long long)card->memory_bytes,
		 card->cores, card->slot);
	if (card->mig[0] != '\0')
		str_addf(out, " mig=%s gi=%u ci=%u", card->mig, card->gi, card->ci);
	str_addc(out, '\n');
}

void claim_write(const struct claim *c, struct str *out)
{
	str_addf(out, "%s %d\n", magic, VERSION);
	str_addf(out, "number=%llu\nstate=%s\n", (unsigned long long)c->number, claim_state_name(c->state));
	write_text(out, "pod_uid", c->pod_uid);
	write_text(out, "pod_namespace", c->pod_namespace);
	write_text(out, "pod_name", c->pod_name);
	write_text(out, "container", c->container);
	write_text(out, "resource", c->resource);
	write_text(out, "cdi", c->cdi);
	str_addf(out, "created_ms=%llu\n", (unsigned long long)c->created_ms);
	for (size_t i = 0; i < c->device_count; i++)
		write_text(out, "device", c->devices[i]);
	str_addf(out, "entry=%u\npriority=%u\npolicy=%s\noversubscribe=%d\nuncontrolled=%d\n", c->entry, c->priority,
		 claim_policy_name(c->policy), c->oversubscribe, c->uncontrolled);
	write_text(out, "signature", c->signature);
	for (size_t i = 0; i < c->card_count; i++)
		write_card(out, &c->cards[i]);
	str_add(out, "end\n");
}

/* While it is read: the claim and the room of its device list. */
struct reading {
	struct claim *claim;
	size_t device_cap;
};

static struct claim *claim_of(void *into)
{
	return ((struct reading *)into)->claim;
}

static int read_u64(struct piece v, uint64_t max, uint64_t *out, struct hm_err *e)
{
	if (!piece_u64(v, max, out))
		return hm_err_set(e, HM_EPROTO, "not a number between 0 and %llu", (unsigned long long)max);
	return 0;
}

static int read_text(struct piece v, char *out, size_t cap, struct hm_err *e)
{
	if (!record_unescape(v, out, cap))
		return hm_err_set(e, HM_EPROTO, "bad escape, or longer than %zu bytes", cap - 1);
	return 0;
}

static int read_number(struct piece v, void *into, struct hm_err *e)
{
	return read_u64(v, UINT64_MAX, &claim_of(into)->number, e);
}

static int read_state(struct piece v, void *into, struct hm_err *e)
{
	for (size_t i = 0; i < HM_COUNT(state_names); i++) {
		if (piece_is(v, state_names[i])) {
			claim_of(into)->state = (enum claim_state)i;
			return 0;
		}
	}
	return hm_err_set(e, HM_EPROTO, "none of allocated, active, ended");
}

#define TEXT_READER(member)                                                                                            \
	static int read_##member(struct piece v, void *into, struct hm_err *e)                                         \
	{                                                                                                              \
		return read_text(v, claim_of(into)->member, sizeof claim_of(into)->member, e);                         \
	}
TEXT_READER(pod_uid)
TEXT_READER(pod_namespace)
TEXT_READER(pod_name)
TEXT_READER(container)
TEXT_READER(resource)
TEXT_READER(cdi)
TEXT_READER(signature)

static int read_created(struct piece v, void *into, struct hm_err *e)
{
	return read_u64(v, UINT64_MAX, &claim_of(into)->created_ms, e);
}

static int read_entry(struct piece v, void *into, struct hm_err *e)
{
	uint64_t entry = 0;
	int r = read_u64(v, UINT32_MAX, &entry, e);

	claim_of(into)->entry = (unsigned)entry;
	return r;
}

static int read_priority(struct piece v, void *into, struct hm_err *e)
{
	uint64_t priority = 0;
	int r = read_u64(v, 1, &priority, e);

	claim_of(into)->priority = (unsigned)priority;
	return r;
}

static int read_policy(struct piece v, void *into, struct hm_err *e)
{
	char name[16];

	if (!piece_copy(v, name, sizeof name) || !claim_policy_of(name, &claim_of(into)->policy))
		return hm_err_set(e, HM_EPROTO, "none of default, force, disable");
	return 0;
}

static int read_flag(struct piece v, bool *out, struct hm_err *e)
{
	uint64_t on = 0;
	int r = read_u64(v, 1, &on, e);

	*out = on == 1;
	return r;
}

static int read_oversubscribe(struct piece v, void *into, struct hm_err *e)
{
	return read_flag(v, &claim_of(into)->oversubscribe, e);
}

static int read_uncontrolled(struct piece v, void *into, struct hm_err *e)
{
	return read_flag(v, &claim_of(into)->uncontrolled, e);
}

static int read_device(struct piece v, void *into, struct hm_err *e)
{
	struct reading *reading = into;
	struct claim *c = reading->claim;
	int r;

	if (c->device_count == CLAIM_MAX_DEVICES)
		return hm_err_set(e, HM_ELIMIT, "more than %d devices", (int)CLAIM_MAX_DEVICES);
	if (!array_reserve(&c->devices, &reading->device_cap, c->device_count + 1, sizeof *c->devices))
		return hm_err_set(e, HM_ENOMEM, "devices");
	r = read_text(v, c->devices[c->device_count], sizeof *c->devices, e);
	if (r == 0)
		c->device_count++;
	return r;
}

/* "mig=<uuid> gi=<number> ci=<number>" */
static bool read_mig(struct cur *words, struct claim_card *card)
{
	struct piece uuid;
	uint64_t ci = 0;

	cur_word(words, "mig=");
	uuid = cur_until(words, ' ');
	cur_word(words, "gi=");
	card->gi = (unsigned)cur_u64(words, ' ', UINT32_MAX);
	cur_word(words, "ci=");
	if (words->bad || !piece_u64(cur_rest(words), UINT32_MAX, &ci) ||
	    !record_word(uuid, card->mig, sizeof card->mig))
		return false;
	card->ci = (unsigned)ci;
	return true;
}

/* "<number>", behind it what read_mig reads where it is a MIG device. */
static bool read_slot(struct cur *words, struct claim_card *card)
{
	struct piece rest = cur_rest(words), number = rest;
	struct cur tail = cur_of(rest.p, rest.n);
	uint64_t slot = 0;

	if (memchr(rest.p, ' ', rest.n) != NULL) {
		number = cur_until(&tail, ' ');
		if (!read_mig(&tail, card))
			return false;
	}
	if (!piece_u64(number, HM_MAX_SLOTS_PER_CARD - 1, &slot))
		return false;
	card->slot = (unsigned)slot;
	return true;
}

/* One MIG device of a card beside another is no card that stands twice. */
static bool is_same_card(const struct claim_card *a, const struct claim_card *b)
{
	return strcmp(a->uuid, b->uuid) == 0 && (a->mig[0] == '\0' || b->mig[0] == '\0' || strcmp(a->mig, b->mig) == 0);
}

/* "<uuid> memory=<bytes> cores=<percent> slot=<first number>[ mig=<uuid> gi=<number> ci=<number>]" */
static int read_card(struct piece v, void *into, struct hm_err *e)
{
	struct claim *c = claim_of(into);
	struct claim_card card = { 0 };
	struct cur words = cur_of(v.p, v.n);
	struct piece uuid = cur_until(&words, ' ');

	cur_word(&words, "memory=");
	card.memory_bytes = cur_u64(&words, ' ', UINT64_MAX);
	cur_word(&words, "cores=");
	card.cores = (unsigned)cur_u64(&words, ' ', 100);
	cur_word(&words, "slot=");
	if (words.bad || !read_slot(&words, &card) || !record_word(uuid, card.uuid, sizeof card.uuid))
		return hm_err_set(
			e, HM_EPROTO,
			"not \"<uuid> memory=<bytes> cores=<0..100> slot=<0..%d>[ mig=<uuid> gi=<n> ci=<n>]\"",
			HM_MAX_SLOTS_PER_CARD - 1);
	for (size_t i = 0; i < c->card_count; i++) {
		if (is_same_card(&c->cards[i], &card))
			return hm_err_set(e, HM_EPROTO, "%s stands twice", card.uuid);
	}
	if (c->card_count == HM_MAX_CARDS)
		return hm_err_set(e, HM_ELIMIT, "more than %d cards", (int)HM_MAX_CARDS);
	c->cards[c->card_count++] = card;
	return 0;
}

static const struct record_key keys[] = {
	{ "number", false, read_number },
	{ "state", false, read_state },
	{ "pod_uid", false, read_pod_uid },
	{ "pod_namespace", false, read_pod_namespace },
	{ "pod_name", false, read_pod_name },
	{ "container", false, read_container },
	{ "resource", false, read_resource },
	{ "cdi", false, read_cdi },
	{ "created_ms", false, read_created },
	{ "entry", false, read_entry },
	{ "device", true, read_device },
	{ "card", true, read_card },
	{ "priority", false, read_priority, 2 },
	{ "policy", false, read_policy, 2 },
	{ "oversubscribe", false, read_oversubscribe, 2 },
	{ "uncontrolled", false, read_uncontrolled, 2 },
	{ "signature", false, read_signature, 2 },
};

int claim_parse(const char *text, size_t n, struct claim *out, struct hm_err *e)
{
	static const struct record_format format = { magic, VERSION, keys, HM_COUNT(keys) };
	struct reading reading = { out, 0 };
	int r;

	*out = (struct claim) { .priority = 1 };
	r = record_parse(&format, text, n, &reading, e);
	if (r < 0)
		claim_fini(out);
	return r;
}
