/* Messages of one stream that wait for the peer's window, framed for gRPC. */
#ifndef HM_RPC_SEND_QUEUE_H
#define HM_RPC_SEND_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/link.h"

struct send_queue {
	struct link messages;
	size_t bytes;   /* memory of all messages in it */
	size_t started; /* bytes of the first message already read */
};

void send_queue_init(struct send_queue *q);
void send_queue_clear(struct send_queue *q); /* frees all messages, a started one too */
bool send_queue_empty(const struct send_queue *q);

/* Copies the message; false where memory is short (nothing changed). */
bool send_queue_push(struct send_queue *q, const uint8_t *msg, size_t n) HM_MUST_USE;
/* As push, but the messages not started go: at most two are left. */
bool send_queue_push_latest(struct send_queue *q, const uint8_t *msg, size_t n) HM_MUST_USE;
void send_queue_drop_unstarted(struct send_queue *q);

/* Moves up to cap bytes to out. */
size_t send_queue_read(struct send_queue *q, uint8_t *out, size_t cap);

#endif
