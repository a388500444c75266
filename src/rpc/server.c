#include "rpc/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "core/cursor.h"
#include "rpc/limits.h"
#include "rpc/peer.h"

enum {
	BACKLOG = 512,
	ACCEPT_BATCH = 16, /* then those accepted get their turn to say who they are, before more of them evict them */
	ACCEPT_PAUSE_MS = 100, /* after the process ran out of descriptors or memory */
};

struct rpc_server {
	struct loop *loop;
	struct rpc_service service;
	struct sockaddr_un address;
	dev_t dev; /* of the socket file: while the socket is open its inode number is not given out again */
	ino_t ino;
	int fd;
	struct loop_fd *watch;
	struct loop_timer *resume; /* accepting, after a pause */
	struct link peers;         /* oldest first */
	bool freeing;
};

int rpc_server_owns_socket(const struct rpc_server *s)
{
	struct stat st;

	return lstat(s->address.sun_path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

size_t rpc_server_connections(const struct rpc_server *s)
{
	size_t n = 0;

	LIST_FOR_EACH (&s->peers, it)
		n++;
	return n;
}

/* ---- accepting ---- */

/* Who goes when there are too many: the oldest that never greeted, else the oldest without calls; NULL: nobody. */
static struct rpc_peer *choose_victim(struct rpc_server *s)
{
	struct rpc_peer *idle = NULL;

	LIST_FOR_EACH (&s->peers, it) {
		struct rpc_peer *p = rpc_peer_of(it);

		if (!rpc_conn_is_greeted(rpc_peer_conn(p)))
			return p;
		if (idle == NULL && rpc_conn_open_streams(rpc_peer_conn(p)) == 0)
			idle = p;
	}
	return idle;
}

static bool make_place(struct rpc_server *s)
{
	struct rpc_peer *victim;

	if (rpc_server_connections(s) < RPC_MAX_CONNECTIONS)
		return true;
	victim = choose_victim(s);
	log_v(2, victim != NULL ? "too many connections: closing an idle one" : "too many connections: refusing one",
	      KV("socket", s->address.sun_path), KV_U64("limit", RPC_MAX_CONNECTIONS));
	rpc_peer_free(victim);
	return victim != NULL;
}

static void add_peer(struct rpc_server *s, int fd)
{
	const struct rpc_peer_owner owner = { .list = &s->peers };
	struct rpc_conn *conn;
	struct rpc_peer *p;
	struct hm_err e;

	if (!make_place(s)) {
		close(fd);
		return;
	}
	if (rpc_conn_new_server(&s->service, loop_now_ms(s->loop), &conn, &e) < 0)
		close(fd);
	else if (rpc_peer_new(s->loop, fd, conn, &owner, &p, &e) == 0)
		return;
	log_warn("connection refused", KV("socket", s->address.sun_path), KV_ERR(&e));
}

/* A listening socket stays readable while we cannot accept, so waiting for it would spin. */
static void pause_accepting(struct rpc_server *s, int errnum)
{
	log_warn("cannot accept a connection, trying again soon", KV("socket", s->address.sun_path),
		 KV("err", hm_errno_text(errnum)));
	if (loop_fd_set(s->watch, 0) == 0)
		loop_timer_arm(s->resume, ACCEPT_PAUSE_MS);
}

static void on_resume(void *arg)
{
	struct rpc_server *s = arg;

	if (loop_fd_set(s->watch, LOOP_READ) < 0)
		loop_timer_arm(s->resume, ACCEPT_PAUSE_MS);
}

static void on_accept(void *arg, int events)
{
	struct rpc_server *s = arg;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			add_peer(s, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			pause_accepting(s, errno);
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

/* ---- life ---- */

static int clear_stale(const char *path, struct hm_err *e)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : hm_err_errno(e, errno, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return hm_err_set(e, HM_EEXIST, "%s exists and is no socket: remove it", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return hm_err_errno(e, errno, "remove the stale socket %s", path);
	return 0;
}

static int open_socket(struct rpc_server *s, struct hm_err *e)
{
	const char *path = s->address.sun_path;
	struct stat st;

	if (clear_stale(path, e) < 0)
		return -e->code;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return hm_err_errno(e, errno, "socket");
	if (bind(s->fd, (const struct sockaddr *)&s->address, sizeof s->address) < 0)
		return hm_err_errno(e, errno, "bind %s", path);
	if (lstat(path, &st) < 0)
		return hm_err_errno(e, errno, "%s", path);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	/* Nobody can connect before listen, so the mode is never seen open. */
	if (chmod(path, 0600) < 0 || listen(s->fd, BACKLOG) < 0)
		return hm_err_errno(e, errno, "listen on %s", path);
	return 0;
}

int rpc_server_new(struct loop *l, const char *path, const struct rpc_method *methods, size_t count, void *arg,
		   struct rpc_server **out, struct hm_err *e)
{
	hm_auto(rpc_server) *s = calloc(1, sizeof *s);
	struct hm_err local = { 0 };

	e = e != NULL ? e : &local;
	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "gRPC server");
	*s = (struct rpc_server) {
		.loop = l, .service = { methods, count, arg }, .address.sun_family = AF_UNIX, .fd = -1
	};
	list_init(&s->peers);
	if (!piece_copy((struct piece) { path, strlen(path) }, s->address.sun_path, sizeof s->address.sun_path))
		return hm_err_set(e, HM_EINVAL, "gRPC server: socket path of %zu bytes is above %zu: %s", strlen(path),
				  sizeof s->address.sun_path - 1, path);
	if (open_socket(s, e) < 0 || loop_timer_new(l, on_resume, s, &s->resume, e) < 0 ||
	    loop_fd_new(l, s->fd, LOOP_READ, on_accept, s, &s->watch, e) < 0)
		return hm_err_wrap(e, "gRPC server");
	*out = HM_STEAL(s);
	return 0;
}

void rpc_server_free(struct rpc_server *s)
{
	if (s == NULL || s->freeing)
		return;
	s->freeing = true;
	if (s->ino != 0 && rpc_server_owns_socket(s))
		unlink(s->address.sun_path);
	loop_timer_free(s->resume);
	loop_fd_free(s->watch);
	if (s->fd >= 0)
		close(s->fd);
	while (!list_empty(&s->peers))
		rpc_peer_free(rpc_peer_of(list_first(&s->peers)));
	free(s);
}
