/* The texts of gRPC's headers: grpc-message (percent-encoded) and grpc-timeout. */
#ifndef HM_RPC_GRPC_TEXT_H
#define HM_RPC_GRPC_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/cursor.h"

enum { GRPC_TIMEOUT_TEXT = 10 }; /* at most 8 digits, the unit, NUL */

/* Appends `text` as grpc-message carries it: printable ASCII but '%' as it is, all else as %XX. At most
 * RPC_MAX_MESSAGE_TEXT_BYTES of it are taken, and no UTF-8 character is cut in two. */
void grpc_message_encode(struct str *out, const char *text);

/* The text of a grpc-message, cut where it does not fit into cap (at least 1) and terminated. Lenient as the protocol
 * asks: an escape that is none stays as it is. A NUL becomes '?'. */
void grpc_message_decode(struct piece in, char *out, size_t cap);

/* "250m" to 250 ms, rounded up; false where it is no grpc-timeout. */
bool grpc_timeout_parse(struct piece in, uint64_t *ms) HM_MUST_USE;

/* The shortest grpc-timeout that is not less than ms (at most 99999999 hours). */
void grpc_timeout_format(uint64_t ms, char out[GRPC_TIMEOUT_TEXT]);

#endif
