#include "model/placement/pod_mix.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/splitmix.h"

enum { NO_ENTRY = MIX_MAX_SHAPES };

static void forget_texts(struct mix_shape *s)
{
	free((char *)(uintptr_t)s->use_types);
	free((char *)(uintptr_t)s->no_types);
	s->use_types = NULL;
	s->no_types = NULL;
}

void pod_mix_fini(struct pod_mix *m)
{
	for (size_t i = 0; i < m->count; i++)
		forget_texts(&m->entries[i].shape);
	free(m->entries);
	free(m->window);
	*m = (struct pod_mix) { 0 };
}

struct mix_shape mix_shape_of(const struct pod_ask *ask)
{
	struct mix_shape s = { .cpu_milli = ask->cpu_milli,
			       .host_mib = ask->host_mib,
			       .use_types = ask->wishes.use_types,
			       .no_types = ask->wishes.no_types };

	for (size_t i = 0; i < ask->count; i++) {
		const struct card_ask *a = &ask->containers[i];

		if (a->count == 0 || a->kind == ASK_INIT)
			continue;
		s.cards += a->count;
		s.each.memory_mib = HM_MAX(s.each.memory_mib, a->memory_mib);
		s.each.percent = HM_MAX(s.each.percent, a->percent);
		s.each.cores = HM_MAX(s.each.cores, a->cores);
	}
	/* One of both counts; what asks for a percentage of unknown memory is rarely the smaller. */
	if (s.each.percent > 0)
		s.each.memory_mib = 0;
	return s;
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

static bool same_shape(const struct mix_shape *a, const struct mix_shape *b)
{
	return a->cards == b->cards && a->each.memory_mib == b->each.memory_mib && a->each.percent == b->each.percent &&
	       a->each.cores == b->each.cores && a->cpu_milli == b->cpu_milli && a->host_mib == b->host_mib &&
	       same_text(a->use_types, b->use_types) && same_text(a->no_types, b->no_types);
}

static int copy_shape(const struct mix_shape *from, struct mix_shape *out, struct hm_err *e)
{
	*out = *from;
	out->each.kind = ASK_APP;
	out->each.count = 1;
	out->use_types = from->use_types == NULL ? NULL : strdup(from->use_types);
	out->no_types = from->no_types == NULL ? NULL : strdup(from->no_types);
	if ((from->use_types == NULL) == (out->use_types == NULL) &&
	    (from->no_types == NULL) == (out->no_types == NULL))
		return 0;
	forget_texts(out);
	return hm_err_set(e, HM_ENOMEM, "a pod's shape: no memory");
}

/* The shape's entry, a new one where there is none; an unused one serves again. */
static int find_or_make(struct pod_mix *m, const struct mix_shape *shape, size_t *out, struct hm_err *e)
{
	struct mix_entry fresh = { 0 };
	size_t at = m->count;
	int rc;

	for (size_t i = 0; i < m->count; i++) {
		if (same_shape(&m->entries[i].shape, shape)) {
			*out = i;
			return 0;
		}
		if (m->entries[i].weight == 0 && at == m->count)
			at = i;
	}
	if (at == MIX_MAX_SHAPES)
		return hm_err_set(e, HM_ELIMIT, "more than %d shapes of pods", MIX_MAX_SHAPES);
	rc = copy_shape(shape, &fresh.shape, e);
	if (rc != 0)
		return rc;
	fresh.number = m->shapes++;
	if (at < m->count) {
		forget_texts(&m->entries[at].shape);
		m->entries[at] = fresh;
	} else if (!HM_PUSH(m->entries, m->count, m->cap, fresh)) {
		forget_texts(&fresh.shape);
		return hm_err_set(e, HM_ENOMEM, "the mix of pods: no memory");
	}
	*out = at;
	return 0;
}

int pod_mix_add(struct pod_mix *m, const struct mix_shape *shape, uint64_t weight, struct hm_err *e)
{
	size_t at;
	int rc;

	if (shape->cards == 0)
		return 0;
	rc = find_or_make(m, shape, &at, e);
	if (rc != 0)
		return rc;
	m->entries[at].weight += weight;
	m->total += weight;
	return 0;
}

static int make_window(struct pod_mix *m, struct hm_err *e)
{
	if (m->window != NULL)
		return 0;
	m->window = malloc(MIX_WINDOW * sizeof *m->window);
	if (m->window == NULL)
		return hm_err_set(e, HM_ENOMEM, "the mix of pods: no memory");
	for (size_t i = 0; i < MIX_WINDOW; i++)
		m->window[i] = NO_ENTRY;
	return 0;
}

/* All places are taken: the rarest shape's pods are forgotten, of several the shape's that came first. */
static void make_way(struct pod_mix *m)
{
	size_t rarest = 0;

	for (size_t i = 1; i < m->count; i++) {
		const struct mix_entry *a = &m->entries[i], *b = &m->entries[rarest];

		if (a->weight < b->weight || (a->weight == b->weight && a->number < b->number))
			rarest = i;
	}
	for (size_t i = 0; i < MIX_WINDOW; i++)
		if (m->window[i] == rarest)
			m->window[i] = NO_ENTRY;
	m->total -= m->entries[rarest].weight;
	m->entries[rarest].weight = 0;
}

/* The pod instead of the one that has this place in the window. */
static int put(struct pod_mix *m, size_t place, const struct mix_shape *shape, struct hm_err *e)
{
	uint16_t *slot = &m->window[place];
	size_t at;
	int rc;

	if (*slot != NO_ENTRY) {
		m->entries[*slot].weight--;
		m->total--;
		*slot = NO_ENTRY;
	}
	rc = find_or_make(m, shape, &at, e);
	if (rc == -HM_ELIMIT) {
		make_way(m);
		rc = find_or_make(m, shape, &at, e);
	}
	if (rc != 0)
		return rc;
	*slot = (uint16_t)at;
	m->entries[at].weight++;
	m->total++;
	return 0;
}

int pod_mix_see(struct pod_mix *m, const struct mix_shape *shape, struct hm_err *e)
{
	int rc;

	if (shape->cards == 0)
		return 0;
	rc = make_window(m, e);
	if (rc == 0)
		rc = put(m, m->seen % MIX_WINDOW, shape, e);
	if (rc == 0)
		m->seen++;
	return rc;
}

/* They fall the same way every time. */
static uint64_t dice(uint64_t n)
{
	return splitmix_scramble(n * SPLITMIX_STEP);
}

/* Reservoir: the n-th pod takes the place of any of the n with the same chance, and most of those are in no window. */
int pod_mix_sample(struct pod_mix *m, const struct mix_shape *shape, struct hm_err *e)
{
	uint64_t place = m->seen < MIX_WINDOW ? m->seen : dice(m->seen) % (m->seen + 1);
	int rc;

	if (shape->cards == 0)
		return 0;
	rc = make_window(m, e);
	if (rc == 0 && place < MIX_WINDOW)
		rc = put(m, place, shape, e);
	if (rc == 0)
		m->seen++;
	return rc;
}
