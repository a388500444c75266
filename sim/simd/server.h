/* hami-simd: the socket, who is connected, what each holds, and the virtual clock. One thread, one loop. */
#ifndef HM_SIM_SERVER_H
#define HM_SIM_SERVER_H

#include "core/cleanup.h"
#include "core/err.h"
#include "core/link.h"
#include "io/loop.h"
#include "sim/lib/sim_proto.h"
#include "sim/lib/sim_state.h"

struct server {
	struct loop *loop;
	const char *dir;
	struct sim_node *node;
	int state_fd, listen_fd;
	struct loop_fd *listener;
	struct loop_timer *tick;   /* utilisation samples, wall clock */
	struct loop_timer *grace;  /* virtual clock: who is idle */
	struct loop_timer *reload; /* the driver comes back */
	struct loop_timer *resume; /* accepting, after a pause */
	struct link clients;
	struct link waits; /* virtual clock: struct wait, oldest first */
	uint64_t joins;
};

enum { NO_PROCESS = SIM_MAX_PROCESSES };

/* A connection. It ends at EOF or when its pidfd says that the process is gone, whichever comes first: a forked child
 * may hold our end of the socket open beyond its parent's death. */
struct client {
	struct link on; /* server.clients */
	struct server *server;
	int fd, pid_fd; /* pid_fd -1: not to be had */
	struct loop_fd *watch, *pid_watch;
	uint32_t pid, uid;
	unsigned process;       /* number, or NO_PROCESS */
	bool idle;              /* virtual clock: did nothing for a grace time, so nobody waits for it */
	uint32_t seen_activity; /* at the last look */
	unsigned graces;        /* grace times in a row in which it did nothing but run */
};

struct wait {
	struct link on; /* server.waits */
	struct client *client;
	bool sleeps; /* until `at`, else for ticket `at` on `card` */
	unsigned card;
	uint64_t at;
	uint64_t together; /* the clock stands until so many waits are there */
};

/* The socket in s->dir. -HM_EEXIST where another daemon serves there. */
int server_listen(struct server *s, struct hm_err *e) HM_MUST_USE;
/* Serves on it; `loop`, `node` and `state_fd` are set. server_stop also ends a start that failed. */
int server_start(struct server *s, struct hm_err *e) HM_MUST_USE;
void server_stop(struct server *s);

enum server_answer { SERVER_REPLY, SERVER_REPLY_WITH_STATE, SERVER_SILENT, SERVER_HANG_UP };

/* One message of a client, which is on server.clients. Fills *reply unless silent; SERVER_HANG_UP: it is no request. */
enum server_answer server_request(struct client *c, const void *bytes, size_t n, struct sim_reply *reply);

/* The card's lock; one whose owner died is broken. */
void server_lock_card(struct server *s, unsigned card);
/* Gives back all that a process held, and its number. */
void server_end_process(struct server *s, struct client *c);
void server_wake(struct server *s, unsigned process);
void server_sync(struct server *s); /* all engines up to now */

/* control.c: a request of hami-simctl. */
void control_run(struct server *s, const struct sim_request *q, struct sim_reply *r);

/* mig.c: a request of the MIG kind; a card as the node's file has it, before anybody else sees it. */
void mig_run(struct server *s, const struct sim_request *q, struct sim_reply *r);
void mig_come_up(struct sim_card *c);

/* clock.c: the virtual clock. */
int clock_wait(struct server *s, struct client *c, const struct sim_request *q) HM_MUST_USE;
void clock_forget(struct server *s, const struct client *c); /* its waits */
void clock_turn(struct server *s);                           /* moves on if all that compute wait */
void clock_grace_over(struct server *s);                     /* who did nothing for so long is idle */

#endif
