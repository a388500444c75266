#include "rpc/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/cursor.h"
#include "rpc/peer.h"

struct rpc_client {
	struct loop *loop;
	struct rpc_peer *peer; /* NULL once the connection ended */
	bool freeing;
};

static void on_closed(void *arg)
{
	struct rpc_client *c = arg;

	c->peer = NULL;
}

static int connect_to(const char *path, struct hm_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	hm_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return hm_err_errno(e, errno, "socket");
	if (!piece_copy((struct piece) { path, strlen(path) }, address.sun_path, sizeof address.sun_path))
		return hm_err_set(e, HM_EINVAL, "socket path of %zu bytes is above %zu", strlen(path),
				  sizeof address.sun_path - 1);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
		return hm_steal_fd(&fd);
	if (errno == ECONNREFUSED || errno == EAGAIN)
		return hm_err_set(e, HM_EAGAIN, "%s", hm_errno_text(errno));
	return hm_err_errno(e, errno, "connect");
}

int rpc_client_new(struct loop *l, const char *path, struct rpc_client **out, struct hm_err *e)
{
	hm_auto(rpc_client) *c = calloc(1, sizeof *c);
	const struct rpc_peer_owner owner = { .closed = on_closed, .arg = c };
	struct rpc_conn *conn;
	int fd;

	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "gRPC client");
	c->loop = l;
	fd = connect_to(path, e);
	if (fd < 0)
		return hm_err_wrap(e, "gRPC client of %s", path);
	if (rpc_conn_new_client(loop_now_ms(l), &conn, e) < 0) {
		close(fd);
		return hm_err_wrap(e, "gRPC client of %s", path);
	}
	if (rpc_peer_new(l, fd, conn, &owner, &c->peer, e) < 0)
		return hm_err_wrap(e, "gRPC client of %s", path);
	*out = HM_STEAL(c);
	return 0;
}

void rpc_client_free(struct rpc_client *c)
{
	if (c == NULL || c->freeing)
		return;
	c->freeing = true;
	rpc_peer_free(HM_STEAL(c->peer));
	free(c);
}

int rpc_client_call(struct rpc_client *c, const char *path, const uint8_t *msg, size_t n, uint64_t timeout_ms,
		    const struct rpc_reply *reply, struct rpc_request **out, struct hm_err *e)
{
	if (c->peer == NULL)
		return hm_err_set(e, HM_EAGAIN, "call %s: the connection was lost: connect again", path);
	return rpc_conn_call(rpc_peer_conn(c->peer), loop_now_ms(c->loop), path, msg, n, timeout_ms, reply, out, e);
}
