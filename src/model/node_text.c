#include "model/node_text.h"

#include <stdbool.h>
#include <string.h>

#include "core/fmt.h"
#include "model/record.h"

enum { VERSION = 1 };

static const char magic[] = "hami-vgpu-node";
static const char *const slicing_names[] = { "static", "dynamic" };
static const char *const binding_names[] = { "late", "classic" };

const char *slicing_name(enum slicing slicing)
{
	return (size_t)slicing < HM_COUNT(slicing_names) ? slicing_names[slicing] : "unknown";
}

const char *node_binding_name(enum node_binding binding)
{
	return (size_t)binding < HM_COUNT(binding_names) ? binding_names[binding] : "unknown";
}

void node_text_from_slots(const struct slots *s, const struct slots_config *config, struct node_text *out)
{
	*out = (struct node_text) {
		.slots_per_card = config->cores_per_device,
		.slot_memory_mb = config->memory_mb_per_core,
		.slicing = config->slicing,
		.card_count = slots_card_count(s),
	};
	for (size_t i = 0; i < out->card_count; i++) {
		const struct slot_card *from = slots_card(s, i);
		struct node_card *to = &out->cards[i];

		hm_fmt(to->uuid, sizeof to->uuid, "%s", from->card->uuid);
		to->slots = from->slots;
		to->slot_memory_bytes = from->slot_memory_bytes;
		to->slot_cores = from->slot_cores;
	}
}

void node_text_write(const struct node_text *node, struct str *out)
{
	str_addf(out, "%s %d\n", magic, VERSION);
	str_addf(out, "slots_per_card=%llu\nslot_memory_mb=%llu\n", (unsigned long long)node->slots_per_card,
		 (unsigned long long)node->slot_memory_mb);
	str_addf(out, "slicing=%s\nbinding=%s\npid=%llu\n", slicing_name(node->slicing),
		 node_binding_name(node->binding), (unsigned long long)node->pid);
	for (size_t i = 0; i < node->card_count; i++)
		str_addf(out, "card=%s slots=%u slot_memory=%llu slot_cores=%u\n", node->cards[i].uuid,
			 node->cards[i].slots, (unsigned long long)node->cards[i].slot_memory_bytes,
			 node->cards[i].slot_cores);
	str_add(out, "end\n");
}

static int read_u64(struct piece v, uint64_t max, uint64_t *out, struct hm_err *e)
{
	if (!piece_u64(v, max, out))
		return hm_err_set(e, HM_EPROTO, "not a number between 0 and %llu", (unsigned long long)max);
	return 0;
}

static int read_name(struct piece v, const char *const names[2], unsigned *out, struct hm_err *e)
{
	for (unsigned i = 0; i < 2; i++) {
		if (piece_is(v, names[i])) {
			*out = i;
			return 0;
		}
	}
	return hm_err_set(e, HM_EPROTO, "neither %s nor %s", names[0], names[1]);
}

static int read_slots_per_card(struct piece v, void *into, struct hm_err *e)
{
	return read_u64(v, HM_MAX_SLOTS_PER_CARD, &((struct node_text *)into)->slots_per_card, e);
}

static int read_slot_memory_mb(struct piece v, void *into, struct hm_err *e)
{
	return read_u64(v, UINT64_MAX, &((struct node_text *)into)->slot_memory_mb, e);
}

static int read_slicing(struct piece v, void *into, struct hm_err *e)
{
	unsigned at = 0;
	int r = read_name(v, slicing_names, &at, e);

	((struct node_text *)into)->slicing = (enum slicing)at;
	return r;
}

static int read_binding(struct piece v, void *into, struct hm_err *e)
{
	unsigned at = 0;
	int r = read_name(v, binding_names, &at, e);

	((struct node_text *)into)->binding = (enum node_binding)at;
	return r;
}

static int read_pid(struct piece v, void *into, struct hm_err *e)
{
	return read_u64(v, INT32_MAX, &((struct node_text *)into)->pid, e);
}

/* "<uuid> slots=<n> slot_memory=<bytes> slot_cores=<percent>" */
static int read_card(struct piece v, void *into, struct hm_err *e)
{
	struct node_text *node = into;
	struct node_card card = { 0 };
	struct cur words = cur_of(v.p, v.n);
	struct piece uuid = cur_until(&words, ' ');
	uint64_t slots, cores = 0;

	cur_word(&words, "slots=");
	slots = cur_u64(&words, ' ', HM_MAX_SLOTS_PER_CARD);
	cur_word(&words, "slot_memory=");
	card.slot_memory_bytes = cur_u64(&words, ' ', UINT64_MAX);
	cur_word(&words, "slot_cores=");
	if (words.bad || slots == 0 || !piece_u64(cur_rest(&words), 100, &cores) ||
	    !record_word(uuid, card.uuid, sizeof card.uuid))
		return hm_err_set(e, HM_EPROTO, "not \"<uuid> slots=<1..%d> slot_memory=<bytes> slot_cores=<0..100>\"",
				  (int)HM_MAX_SLOTS_PER_CARD);
	card.slots = (unsigned)slots;
	card.slot_cores = (unsigned)cores;
	for (size_t i = 0; i < node->card_count; i++) {
		if (strcmp(node->cards[i].uuid, card.uuid) == 0)
			return hm_err_set(e, HM_EPROTO, "%s stands twice", card.uuid);
	}
	if (node->card_count == HM_MAX_CARDS)
		return hm_err_set(e, HM_ELIMIT, "more than %d cards", (int)HM_MAX_CARDS);
	node->cards[node->card_count++] = card;
	return 0;
}

static const struct record_key keys[] = {
	{ "slots_per_card", false, read_slots_per_card },
	{ "slot_memory_mb", false, read_slot_memory_mb },
	{ "slicing", false, read_slicing },
	{ "binding", false, read_binding },
	{ "pid", false, read_pid },
	{ "card", true, read_card },
};

int node_text_parse(const char *text, size_t n, struct node_text *out, struct hm_err *e)
{
	static const struct record_format format = { magic, VERSION, keys, HM_COUNT(keys) };

	*out = (struct node_text) { 0 };
	return record_parse(&format, text, n, out, e);
}
