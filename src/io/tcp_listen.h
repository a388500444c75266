/* Listening TCP sockets. */
#ifndef HM_IO_TCP_LISTEN_H
#define HM_IO_TCP_LISTEN_H

#include <stdbool.h>

#include "core/err.h"

/* address: "127.0.0.1:8080", "[::1]:8080"; ":8080", "0.0.0.0:8080" and "[::]:8080" are every address, IPv4 and IPv6, as
 * Go's are; port 0: any free one. *fd is the caller's; it does not block. -HM_EINVAL for an address that is none,
 * -HM_EIO and others where it cannot be bound. */
int tcp_listen(const char *address, int backlog, int *fd, struct hm_err *e) HM_MUST_USE;

/* The other end of the socket is on this machine, or in this pod: 127.0.0.1 or ::1. No other loopback address is: a
 * mesh's proxy passes on what came from elsewhere by one (Istio's by 127.0.0.6). False where it is not connected. */
bool tcp_peer_is_local(int fd);

enum { TCP_PEER_BYTES = 46 };
void tcp_peer_text(int fd, char out[TCP_PEER_BYTES]); /* its address; "" where it has none */

unsigned tcp_port(int fd); /* the port that a socket has; 0 where it has none */

#endif
