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

int tcp_listen(const char *address, int backlog, int *out, struct hm_err *e)
{
	struct sockaddr_storage to;
	socklen_t n = 0;
	hm_auto_fd fd = -1;
	int on = 1, r = parse_address(address, &to, &n, e);

	if (r < 0)
		return r;
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return hm_err_errno(e, errno, "%s", address);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&to, n) < 0 || listen(fd, backlog) < 0)
		return hm_err_errno(e, errno, "%s", address);
	*out = hm_steal_fd(&fd);
	return 0;
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
