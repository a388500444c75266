/* gRPC's framing of messages within a stream: one byte "compressed", four bytes length, the message. Engine without
 * I/O; memory grows with the bytes that came, never with the length that a peer claims. */
#ifndef HM_RPC_GRPC_FRAME_H
#define HM_RPC_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRPC_PREFIX = 5 };

enum grpc_next {
	GRPC_MORE,    /* all bytes were taken */
	GRPC_MESSAGE, /* a message is complete; bytes may be left */
	GRPC_BAD,     /* sticky: see grpc_deframer_status */
};

struct grpc_deframer {
	size_t max_bytes;
	uint8_t prefix[GRPC_PREFIX];
	size_t prefix_have;
	uint8_t *body; /* owned */
	size_t length, have, cap;
	bool complete;
	enum grpc_problem { GRPC_FINE, GRPC_COMPRESSED, GRPC_BAD_FLAG, GRPC_TOO_LARGE, GRPC_NO_MEMORY } problem;
};

void grpc_deframer_init(struct grpc_deframer *d, size_t max_bytes);
void grpc_deframer_fini(struct grpc_deframer *d); /* frees the message; usable again, as after init */

/* Takes bytes up to the end of one message; *used says how many. */
enum grpc_next grpc_feed(struct grpc_deframer *d, const uint8_t *in, size_t n, size_t *used);

/* After GRPC_MESSAGE: the message, never NULL, d->length bytes, valid until the next call. */
const uint8_t *grpc_message(const struct grpc_deframer *d);
/* True between messages: the stream may end here. */
bool grpc_deframer_at_edge(const struct grpc_deframer *d);
/* After GRPC_BAD: the enum rpc_status to end the call with, and a text for it. */
int grpc_deframer_status(const struct grpc_deframer *d, char *text, size_t cap);

/* The prefix of an uncompressed message of n bytes (n below 4 GiB). */
void grpc_write_prefix(uint8_t out[GRPC_PREFIX], size_t n);

#endif
