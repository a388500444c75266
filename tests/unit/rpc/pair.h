/* A server and a client engine back to back in memory, and a log of what their users saw. */
#ifndef HM_TESTS_UNIT_RPC_PAIR_H
#define HM_TESTS_UNIT_RPC_PAIR_H

#include "base/str.h"
#include "rpc/conn.h"

enum { PAIR_METHODS = 6 };

struct pair {
	struct rpc_conn *server, *client;
	uint64_t now_ms;
	size_t step;          /* bytes handed over at once */
	struct str to_server; /* all bytes so far, where record is set */
	bool record;
	struct str log;        /* "call Echo 5;", "gone Hold;", "message 5 hello;", "done OK text;" */
	struct rpc_call *held; /* the last call of Hold, while it lives */
	struct rpc_request *request;
	bool cancel_on_message;
};

/* Echo, Three (three messages), Fail (status 5, "no %"), Hold (never ends by itself), Latest (five snapshots of 200 kB,
 * then OK), Send (one message, then held). Paths are "/t.T/<name>"; the argument is the pair. */
extern const struct rpc_method pair_methods[PAIR_METHODS];
extern const struct rpc_reply pair_reply; /* arg is to be set to the pair */

int pair_init(struct pair *p, size_t step, struct hm_err *e) HM_MUST_USE;
/* lost and free for both. */
void pair_fini(struct pair *p);
/* Both ways until nothing moves; false where an engine refused bytes. */
bool pair_run(struct pair *p) HM_MUST_USE;
int pair_call(struct pair *p, const char *path, const char *text, uint64_t timeout_ms, struct hm_err *e) HM_MUST_USE;
/* Pulls and throws away. */
void drain(struct rpc_conn *c);

#endif
