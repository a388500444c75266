#include "model/mig.h"

#include <string.h>
#include <strings.h>

#include "contract/hami.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/num.h"

#define MIB_PER_GIB 1024

/* ---- equality */

static bool profile_equal(const struct mig_profile *a, const struct mig_profile *b)
{
	return strcmp(a->name, b->name) == 0 && a->id == b->id && a->slices == b->slices &&
	       a->instances == b->instances && a->multiprocessors == b->multiprocessors &&
	       a->memory_mib == b->memory_mib && a->size == b->size && a->start_count == b->start_count &&
	       memcmp(a->starts, b->starts, a->start_count * sizeof a->starts[0]) == 0;
}

static bool device_equal(const struct mig_device *a, const struct mig_device *b)
{
	return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->profile, b->profile) == 0 && a->gi == b->gi &&
	       a->ci == b->ci && a->at.start == b->at.start && a->at.size == b->at.size &&
	       a->memory_mib == b->memory_mib && a->whole == b->whole;
}

bool mig_card_equal(const struct mig_card *a, const struct mig_card *b)
{
	if (a->capable != b->capable || a->enabled != b->enabled || a->pending != b->pending ||
	    a->profile_count != b->profile_count || a->device_count != b->device_count ||
	    a->bare_count != b->bare_count)
		return false;
	for (size_t i = 0; i < a->profile_count; i++)
		if (!profile_equal(&a->profiles[i], &b->profiles[i]))
			return false;
	for (size_t i = 0; i < a->device_count; i++)
		if (!device_equal(&a->devices[i], &b->devices[i]))
			return false;
	for (size_t i = 0; i < a->bare_count; i++)
		if (!device_equal(&a->bare[i], &b->bare[i]))
			return false;
	return true;
}

/* ---- names */

/* "1g.10gb+me" in its parts. */
struct name_parts {
	uint64_t slices, gb;
	struct piece suffix; /* what stands behind "gb" */
};

static bool read_digits(const char **p, uint64_t *out)
{
	size_t n = strspn(*p, "0123456789");
	const char *from = *p;

	*p += n;
	return num_u64(from, n, 10000, out);
}

static bool read_name(const char *name, struct name_parts *out)
{
	if (!read_digits(&name, &out->slices) || strncmp(name, "g.", 2) != 0)
		return false;
	name += 2;
	if (!read_digits(&name, &out->gb) || strncmp(name, "gb", 2) != 0)
		return false;
	out->suffix = (struct piece) { name + 2, strlen(name + 2) };
	return true;
}

static bool nearly(const struct name_parts *a, const struct name_parts *b)
{
	uint64_t apart = a->gb > b->gb ? a->gb - b->gb : b->gb - a->gb;

	return a->slices == b->slices && apart * 20 <= (a->gb > b->gb ? a->gb : b->gb) && a->suffix.n == b->suffix.n &&
	       memcmp(a->suffix.p, b->suffix.p, a->suffix.n) == 0;
}

const struct mig_profile *mig_find_profile(const struct mig_card *c, const char *name)
{
	const struct mig_profile *found = NULL;
	struct name_parts wanted, has;

	for (size_t i = 0; i < c->profile_count; i++)
		if (strcmp(c->profiles[i].name, name) == 0)
			return &c->profiles[i];
	if (!read_name(name, &wanted))
		return NULL;
	for (size_t i = 0; i < c->profile_count; i++) {
		if (!read_name(c->profiles[i].name, &has) || !nearly(&wanted, &has))
			continue;
		if (found != NULL)
			return NULL;
		found = &c->profiles[i];
	}
	return found;
}

const struct mig_device *mig_find_device(const struct mig_card *c, const char *uuid)
{
	for (size_t i = 0; i < c->device_count; i++)
		if (strcmp(c->devices[i].uuid, uuid) == 0)
			return &c->devices[i];
	return NULL;
}

bool mig_resource_name(const char *profile, char *out, size_t cap)
{
	size_t n = hm_fmt(out, cap, HAMI_RESOURCE_MIG_PREFIX "%s", profile);

	if (n >= cap)
		return false;
	for (char *p = out; *p != '\0'; p++)
		if (*p == '+')
			*p = '.';
	return true;
}

/* The driver's tools name a profile's memory so: the part of the card in eighths, rounded up, times the card's GiB,
 * rounded up before and to the nearest behind. */
void mig_make_name(unsigned slices, uint64_t memory_mib, uint64_t card_mib, const char *suffix, char *out, size_t cap)
{
	uint64_t eighths = card_mib > 0 ? (memory_mib * 8 + card_mib - 1) / card_mib : 0;
	uint64_t gib = (card_mib + MIB_PER_GIB - 1) / MIB_PER_GIB;

	hm_fmt(out, cap, "%ug.%llugb%s", slices, (unsigned long long)((eighths * gib + 4) / 8), suffix);
}

/* ---- sums */

unsigned mig_cores(const struct mig_profile *p, const struct mig_card *c)
{
	unsigned most = 0;

	for (size_t i = 0; i < c->profile_count; i++)
		if (c->profiles[i].multiprocessors > most)
			most = c->profiles[i].multiprocessors;
	return most == 0 ? 100 : (p->multiprocessors * 100 + most - 1) / most;
}

unsigned mig_most_instances(const struct mig_profile *profiles, size_t count)
{
	unsigned most = 0;

	for (size_t i = 0; i < count; i++)
		if (profiles[i].instances > most)
			most = profiles[i].instances;
	return most;
}

bool mig_overlaps(struct mig_placement a, struct mig_placement b)
{
	return (uint64_t)a.start < (uint64_t)b.start + b.size && (uint64_t)b.start < (uint64_t)a.start + a.size;
}

bool mig_may_stand(const struct mig_profile *p, struct mig_placement at)
{
	for (size_t i = 0; i < p->start_count; i++)
		if (p->starts[i] == at.start)
			return p->size == at.size && p->size > 0;
	return false;
}

/* ---- models */

static bool is_word_end(char c)
{
	return c == ' ' || c == '-' || c == '_' || c == '\0';
}

/* The next word of *p; false at the end. */
static bool next_word(const char **p, struct piece *word)
{
	while (**p != '\0' && is_word_end(**p))
		(*p)++;
	word->p = *p;
	while (!is_word_end(**p))
		(*p)++;
	word->n = (size_t)(*p - word->p);
	return word->n > 0;
}

static bool has_word(const char *text, const char *wanted, size_t n)
{
	struct piece word;

	while (next_word(&text, &word))
		if (word.n == n && strncasecmp(word.p, wanted, n) == 0)
			return true;
	return false;
}

/* "80GB" of a card that has so much: what drivers show lies a percent or two below. */
static bool is_its_memory(struct piece word, uint64_t memory_bytes)
{
	uint64_t gb = 0, has = memory_bytes >> 20; /* MiB */

	if (word.n < 3 || strncasecmp(word.p + word.n - 2, "gb", 2) != 0 || !num_u64(word.p, word.n - 2, 4096, &gb))
		return false;
	return has * 100 >= gb * MIB_PER_GIB * 95 && has * 100 <= gb * MIB_PER_GIB * 101;
}

static bool word_matches(struct piece word, const char *model, uint64_t memory_bytes)
{
	if (has_word(model, word.p, word.n) || is_its_memory(word, memory_bytes))
		return true;
	return word.n >= 3 && word.n <= 4 && strncasecmp(word.p, "SXM", 3) == 0 && !has_word(model, "PCIe", 4) &&
	       !has_word(model, "NVL", 3);
}

bool mig_model_matches(const char *pattern, const char *model, uint64_t memory_bytes)
{
	struct piece word;
	bool any = false;

	if (pattern[0] != '\0' && strcasestr(model, pattern) != NULL)
		return true;
	while (next_word(&pattern, &word)) {
		any = true;
		if (!word_matches(word, model, memory_bytes))
			return false;
	}
	return any;
}

/* ---- what is allowed */

static const struct mig_allowed *item_for(const struct mig_allowlist *list, const char *model, uint64_t memory_bytes)
{
	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; k < list->items[i].model_count; k++)
			if (mig_model_matches(list->items[i].models[k], model, memory_bytes))
				return &list->items[i];
	return NULL;
}

static bool is_plain(const struct mig_profile *p)
{
	struct name_parts parts;

	return read_name(p->name, &parts) && parts.suffix.n == 0;
}

size_t mig_allowed(const struct mig_allowlist *list, const char *model, uint64_t memory_bytes, const struct mig_card *c,
		   struct mig_profile out[MIG_MAX_PROFILES], bool *listed)
{
	const struct mig_allowed *item = list != NULL ? item_for(list, model, memory_bytes) : NULL;
	size_t n = 0;

	*listed = list == NULL || item != NULL;
	for (size_t i = 0; list == NULL && i < c->profile_count; i++)
		if (is_plain(&c->profiles[i]))
			out[n++] = c->profiles[i];
	for (size_t i = 0; item != NULL && i < item->profile_count && n < MIG_MAX_PROFILES; i++) {
		const struct mig_profile *p = mig_find_profile(c, item->profiles[i]);

		if (p == NULL)
			continue;
		out[n] = *p;
		hm_fmt(out[n].name, sizeof out[n].name, "%s", item->profiles[i]);
		n++;
	}
	return n;
}
