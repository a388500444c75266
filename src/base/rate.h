/* A token bucket: how often something may happen, averaged. Reads no clock. */
#ifndef HM_BASE_RATE_H
#define HM_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* `tokens` come each `each_ms`, evenly; `burst` are kept. */
struct rate {
	uint64_t tokens, each_ms, burst;
	uint64_t parts; /* of which each_ms make a token, so that one millisecond is worth `tokens` of them */
	uint64_t at_ms;
};

void rate_init(struct rate *r, uint64_t tokens, uint64_t each_ms, uint64_t burst, uint64_t now_ms); /* starts full */
/* Takes one token; false where there is none. A clock that goes back gives nothing. */
bool rate_take(struct rate *r, uint64_t now_ms);

#endif
