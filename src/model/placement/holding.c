#include "model/placement/holding.h"

#include <stdlib.h>
#include <string.h>

#include "model/placement/pod_sum.h"

static int check(const struct hold *h, struct hm_err *e)
{
	if (!h->unreadable && h->share_count > HOLDING_MAX_SHARES)
		return hm_err_set(e, HM_EINVAL, "more than %d shares", HOLDING_MAX_SHARES);
	for (size_t i = 0; !h->unreadable && i < h->share_count; i++) {
		const struct hold_share *s = &h->shares[i];
		if (s->memory_mib < 0 || s->cores < 0)
			return hm_err_set(e, HM_EINVAL, "card %s: a negative amount", s->uuid);
		if (i > 0 && s->container < s[-1].container)
			return hm_err_set(e, HM_EINVAL, "card %s: shares are not in order of containers", s->uuid);
	}
	return 0;
}

/* The parts of the block behind the struct, in this order: the strictest alignment first. */
struct layout {
	size_t shares, asks, kinds, texts;
	size_t kind_count;
};

static bool is_instance(const struct hold_share *s)
{
	return s->profile != NULL && s->profile[0] != '\0';
}

static const char *made_uuid(const struct hold_share *s)
{
	return s->made.uuid != NULL ? s->made.uuid : "";
}

enum { MADE_BYTES = 2 * sizeof(uint32_t) };

/* Of an instance: its profile, the UUID of what was made of it, and the two other ids if it was. */
static size_t instance_bytes(const struct hold_share *s)
{
	if (!is_instance(s))
		return 0;
	return strlen(s->profile) + 1 + strlen(made_uuid(s)) + 1 + (made_uuid(s)[0] != '\0' ? MADE_BYTES : 0);
}

static struct layout lay_out(const struct hold *h)
{
	struct layout l = { .texts = strlen(h->uid) + 1 + strlen(h->name) + 1 };

	for (size_t i = 0; i < h->ask_count; i++)
		if (h->asks[i].kind != ASK_APP)
			l.kind_count = i + 1;
	if (h->unreadable) {
		l.asks = h->ask_count * sizeof(struct card_ask);
		return l;
	}
	l.kinds = l.kind_count * sizeof(enum ask_kind);
	l.shares = h->share_count * sizeof(struct card_share);
	for (size_t i = 0; i < h->share_count; i++)
		l.texts += instance_bytes(&h->shares[i]);
	return l;
}

static const char *put_text(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *to = *at;

	memcpy(to, text, n);
	*at += n;
	return to;
}

static const char *put_instance(char **at, const struct hold_share *s)
{
	const char *profile = put_text(at, s->profile);
	const uint32_t ids[] = { s->made.gpu_instance, s->made.compute_instance };

	if (put_text(at, made_uuid(s))[0] != '\0') {
		memcpy(*at, ids, MADE_BYTES);
		*at += MADE_BYTES;
	}
	return profile;
}

static void fill_shares(struct holding *out, const struct hold *h, char **texts)
{
	for (size_t i = 0; i < h->share_count; i++) {
		const struct hold_share *s = &h->shares[i];
		out->shares[i] = (struct card_share) {
			.container = s->container,
			.card = (uint32_t)i,
			.memory_mib = s->memory_mib,
			.cores = s->cores,
			.profile = NO_PROFILE,
			.at = s->at,
		};
		if (is_instance(s))
			out->shares[i].profile = (int32_t)(put_instance(texts, s) - out->texts);
	}
	out->share_count = (uint32_t)h->share_count;
}

int holding_new(const struct hold *h, struct holding **out, struct hm_err *e)
{
	struct layout l = lay_out(h);
	struct holding *n;
	char *at;
	int err = check(h, e);

	*out = NULL;
	if (err < 0)
		return err;
	n = calloc(1, sizeof *n + l.shares + l.asks + l.kinds + l.texts);
	if (n == NULL || pod_labels_new(h->labels, &n->labels) < 0) {
		free(n);
		return hm_err_set(e, HM_ENOMEM, "pod %s/%s: out of memory", h->name_space, h->name);
	}
	n->shares = (struct card_share *)(n + 1);
	n->asks = (struct card_ask *)((char *)n->shares + l.shares);
	n->kinds = (enum ask_kind *)((char *)n->asks + l.asks);
	at = (char *)n->kinds + l.kinds;
	n->texts = at;
	n->uid = put_text(&at, h->uid);
	n->name = put_text(&at, h->name);
	n->state = h->state;
	n->priority = h->priority;
	n->expires_ms = h->expires_ms;
	n->unreadable = h->unreadable;
	n->container_count = (uint32_t)h->ask_count;
	if (h->unreadable) {
		if (h->ask_count > 0)
			memcpy(n->asks, h->asks, l.asks);
	} else {
		n->kind_count = (uint32_t)l.kind_count;
		for (size_t i = 0; i < l.kind_count; i++)
			n->kinds[i] = h->asks[i].kind;
		fill_shares(n, h, &at);
	}
	*out = n;
	return 0;
}

void holding_free(struct holding *h)
{
	if (h == NULL)
		return;
	free(h->labels);
	free(h);
}

const char *holding_profile(const struct holding *h, const struct card_share *s)
{
	return s->profile == NO_PROFILE ? "" : h->texts + s->profile;
}

struct hold_made holding_made(const struct holding *h, const struct card_share *s)
{
	const char *profile = holding_profile(h, s);
	struct hold_made m = { .uuid = "" };
	uint32_t ids[2];

	if (profile[0] == '\0')
		return m;
	m.uuid = profile + strlen(profile) + 1;
	if (m.uuid[0] == '\0')
		return m;
	memcpy(ids, m.uuid + strlen(m.uuid) + 1, MADE_BYTES);
	m.gpu_instance = ids[0];
	m.compute_instance = ids[1];
	return m;
}

struct quota_amount holding_amount(const struct holding *h, int32_t card_mib)
{
	if (h->unreadable)
		return quota_of_asks(h->asks, h->container_count, card_mib);
	return quota_of_shares(h->shares, h->share_count, h->kinds, h->kind_count);
}

struct card_use holding_most(const struct holding *h, int32_t card_mib)
{
	struct pod_sum sum = { 0 };

	for (size_t i = 0; i < h->container_count; i++) {
		const struct card_ask *a = &h->asks[i];
		if (a->count > 0)
			pod_sum_add(&sum, a->kind == ASK_INIT,
				    (struct card_use) { 1, card_ask_memory(a, card_mib), a->cores });
	}
	return pod_sum_total(&sum);
}
