/* A raw HTTP/2 peer that says whatever a test likes, right or wrong, and logs what it hears:
 * "h <name>: <value>;", "data <n>;", "end;", "rst <code>;", "goaway <code>;", "pong;". */
#ifndef HM_TESTS_UNIT_RPC_PROBE_H
#define HM_TESTS_UNIT_RPC_PROBE_H

#include <nghttp2/nghttp2.h>

#include "base/str.h"
#include "rpc/conn.h"

struct probe_header {
	const char *name, *value;
};

/* What a server probe answers to each request. */
struct probe_answer {
	const struct probe_header *head,
		*trailers; /* each ends with a NULL name; no trailers: END_STREAM with the body */
	const char *body;
	size_t body_n;
	bool early; /* at the request's head, not at its end */
};

struct probe {
	nghttp2_session *session;
	struct str log;
	bool log_headers;
	const char *body;
	size_t body_n, body_at;
	bool keep_open; /* no END_STREAM behind the body */
	const struct probe_answer *answer;
};

void probe_init(struct probe *p, bool server);
void probe_fini(struct probe *p);
/* A request with these headers; the body is p->body. Returns the stream's id. */
int32_t probe_request(struct probe *p, const struct probe_header *headers);
/* Both ways until nothing moves; false where the engine refused bytes. */
bool probe_run(struct probe *p, struct rpc_conn *c, uint64_t now_ms) HM_MUST_USE;

#endif
