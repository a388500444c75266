#include "io/tcp_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "core/num.h"

/* "host:port" with the host in brackets where it is IPv6. */
static int parse_address(const char *text, struct sockaddr_storage *out, socklen_t *n, struct hm_err *e)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;

	memset(out, 0, sizeof *out);
	if (colon == NULL || (size_t)(colon - text) >= sizeof host || !num_u64_str(colon + 1, 65535, &port))
		return hm_err_set(e, HM_EINVAL, "\"%s\" is not of the form ADDRESS:PORT", text);
	hm_fmt(host, sizeof host, "%.*s", (int)(colon - text), text);
	if (host[0] == '[' && colon > text + 1 && colon[-1] == ']') {
		host[colon - text - 1] = '\0';
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*n = sizeof *v6;
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1)
			return 0;
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*n = sizeof *v4;
		if (host[0] == '\0' || inet_pton(AF_INET, host, &v4->sin_addr) == 1)
			return 0;
	}
	return hm_err_set(e, HM_EINVAL, "\"%s\": the address is neither IPv4 nor [IPv6]", text);
}

/* Negative errno where it cannot be. */
static int bind_to(const struct sockaddr *to, socklen_t n, int backlog, int *out)
{
	hm_auto_fd fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (to->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, to, n) < 0 || listen(fd, backlog) < 0)
		return -errno;
	*out = hm_steal_fd(&fd);
	return 0;
}

/* IPv6's "every address" takes IPv4's in; a machine may be without IPv6. */
static int bind_to_all(in_port_t port, int backlog, int *out)
{
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = port };
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = port };
	int r = bind_to((const struct sockaddr *)&v6, sizeof v6, backlog, out);

	if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
		r = bind_to((const struct sockaddr *)&v4, sizeof v4, backlog, out);
	return r;
}

int tcp_listen(const char *address, int backlog, int *out, struct hm_err *e)
{
	struct sockaddr_storage to;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&to;
	socklen_t n = 0;
	int r = parse_address(address, &to, &n, e);

	if (r < 0)
		return r;
	if (to.ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
		r = bind_to_all(v4->sin_port, backlog, out);
	else
		r = bind_to((const struct sockaddr *)&to, n, backlog, out);
	return r < 0 ? hm_err_errno(e, -r, "%s", address) : 0;
}

static bool is_local_v4(struct in_addr a)
{
	return ntohl(a.s_addr) == INADDR_LOOPBACK;
}

bool tcp_peer_is_local(int fd)
{
	struct sockaddr_storage at = { 0 };
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
	socklen_t n = sizeof at;
	struct in_addr within;

	if (getpeername(fd, (struct sockaddr *)&at, &n) < 0)
		return false;
	if (at.ss_family == AF_INET)
		return is_local_v4(((const struct sockaddr_in *)&at)->sin_addr);
	if (at.ss_family != AF_INET6)
		return false;
	memcpy(&within, &v6->sin6_addr.s6_addr[12], sizeof within);
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) || (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && is_local_v4(within));
}

void tcp_peer_text(int fd, char out[TCP_PEER_BYTES])
{
	struct sockaddr_storage at = { 0 };
	const void *address = &((const struct sockaddr_in *)&at)->sin_addr;
	socklen_t n = sizeof at;

	_Static_assert(TCP_PEER_BYTES >= INET6_ADDRSTRLEN, "TCP_PEER_BYTES");
	out[0] = '\0';
	if (getpeername(fd, (struct sockaddr *)&at, &n) < 0)
		return;
	if (at.ss_family == AF_INET6)
		address = &((const struct sockaddr_in6 *)&at)->sin6_addr;
	if (inet_ntop(at.ss_family, address, out, TCP_PEER_BYTES) == NULL)
		out[0] = '\0';
}

unsigned tcp_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof at;

	if (getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return 0;
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					      : ((struct sockaddr_in *)&at)->sin_port);
}
