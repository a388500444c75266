#include "rpc/grpc_frame.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/macros.h"
#include "rpc/status.h"

enum { FIRST_CAP = 512 };

void grpc_deframer_init(struct grpc_deframer *d, size_t max_bytes)
{
	*d = (struct grpc_deframer) { .max_bytes = max_bytes };
}

void grpc_deframer_fini(struct grpc_deframer *d)
{
	free(d->body);
	grpc_deframer_init(d, d->max_bytes);
}

static enum grpc_next fail(struct grpc_deframer *d, enum grpc_problem problem)
{
	d->problem = problem;
	free(d->body);
	d->body = NULL;
	d->cap = d->have = 0;
	return GRPC_BAD;
}

static size_t take_prefix(struct grpc_deframer *d, const uint8_t *in, size_t n)
{
	size_t k = HM_MIN(n, GRPC_PREFIX - d->prefix_have);

	memcpy(d->prefix + d->prefix_have, in, k);
	d->prefix_have += k;
	return k;
}

static enum grpc_problem check_prefix(struct grpc_deframer *d)
{
	d->length = (size_t)d->prefix[1] << 24 | (size_t)d->prefix[2] << 16 | (size_t)d->prefix[3] << 8 | d->prefix[4];
	if (d->prefix[0] > 1)
		return GRPC_BAD_FLAG;
	if (d->prefix[0] == 1)
		return GRPC_COMPRESSED;
	return d->length > d->max_bytes ? GRPC_TOO_LARGE : GRPC_FINE;
}

static bool make_room(struct grpc_deframer *d, size_t more)
{
	size_t cap = d->cap > 0 ? d->cap : FIRST_CAP, most = HM_MAX(d->length, (size_t)FIRST_CAP);
	uint8_t *p;

	if (d->have + more <= d->cap)
		return true;
	while (cap < d->have + more)
		cap *= 2;
	cap = HM_MIN(cap, most);
	p = realloc(d->body, cap);
	if (p == NULL)
		return false;
	d->body = p;
	d->cap = cap;
	return true;
}

enum grpc_next grpc_feed(struct grpc_deframer *d, const uint8_t *in, size_t n, size_t *used)
{
	size_t k;

	*used = 0;
	if (d->problem != GRPC_FINE)
		return GRPC_BAD;
	if (d->complete) {
		d->complete = false;
		d->prefix_have = d->have = 0;
	}
	if (d->prefix_have < GRPC_PREFIX) {
		enum grpc_problem problem;

		*used = take_prefix(d, in, n);
		if (d->prefix_have < GRPC_PREFIX)
			return GRPC_MORE;
		problem = check_prefix(d);
		if (problem != GRPC_FINE)
			return fail(d, problem);
	}
	k = HM_MIN(n - *used, d->length - d->have);
	if (k > 0) {
		if (!make_room(d, k))
			return fail(d, GRPC_NO_MEMORY);
		memcpy(d->body + d->have, in + *used, k);
		d->have += k;
		*used += k;
	}
	d->complete = d->have == d->length;
	return d->complete ? GRPC_MESSAGE : GRPC_MORE;
}

const uint8_t *grpc_message(const struct grpc_deframer *d)
{
	return d->body != NULL ? d->body : (const uint8_t *)"";
}

bool grpc_deframer_at_edge(const struct grpc_deframer *d)
{
	return d->problem == GRPC_FINE && (d->complete || d->prefix_have == 0);
}

int grpc_deframer_status(const struct grpc_deframer *d, char *text, size_t cap)
{
	switch (d->problem) {
	case GRPC_COMPRESSED:
		hm_fmt(text, cap, "message is marked compressed, but no grpc-encoding was agreed");
		return RPC_INTERNAL;
	case GRPC_BAD_FLAG:
		hm_fmt(text, cap, "message starts with flag %u, neither 0 nor 1", d->prefix[0]);
		return RPC_INTERNAL;
	case GRPC_TOO_LARGE:
		hm_fmt(text, cap, "message of %zu bytes is above the limit of %zu", d->length, d->max_bytes);
		return RPC_RESOURCE_EXHAUSTED;
	case GRPC_NO_MEMORY:
		hm_fmt(text, cap, "out of memory for a message of %zu bytes", d->length);
		return RPC_RESOURCE_EXHAUSTED;
	case GRPC_FINE: break;
	}
	hm_fmt(text, cap, "stream ended within a message");
	return RPC_INTERNAL;
}

void grpc_write_prefix(uint8_t out[GRPC_PREFIX], size_t n)
{
	out[0] = 0;
	for (size_t i = 0; i < 4; i++)
		out[1 + i] = (uint8_t)(n >> (24 - 8 * i));
}
