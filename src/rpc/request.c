/* The client's side of a stream. `done` comes exactly once, whichever of these is first: trailers, a broken answer, the
 * deadline, a cancel, the stream's or the connection's end. Then the stream is reset where it is still open, and its
 * memory goes when nghttp2 closes it. */
#include "rpc/client.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/num.h"
#include "rpc/grpc_text.h"
#include "rpc/limits.h"
#include "rpc/stream.h"

struct rpc_request {
	struct rpc_stream s; /* first: streams are cast to requests */
	struct rpc_reply reply;
	uint64_t timeout_ms;
	bool done;
	bool grpc;       /* the answer's content-type */
	int http_status; /* 0: none came */
	int status;      /* grpc-status; -1: none came */
	char text[RPC_MAX_MESSAGE_TEXT_BYTES + 1];
};

static struct rpc_request *request_of(struct rpc_stream *s)
{
	return HM_CONTAINER(s, struct rpc_request, s);
}

static void request_free(struct rpc_stream *s)
{
	rpc_stream_fini(s);
	free(request_of(s));
}

/* The callback is the last thing done: it may free the client. */
static void end(struct rpc_request *r, int status, const char *text)
{
	if (r->done)
		return;
	r->done = true;
	r->s.deadline_ms = RPC_NEVER;
	if (r->reply.done != NULL)
		r->reply.done(r->reply.arg, status, text);
}

static void end_and_reset(struct rpc_request *r, int status, const char *text)
{
	if (r->done)
		return;
	rpc_stream_reset(&r->s, NGHTTP2_CANCEL);
	end(r, status, text);
}

/* ---- the answer ---- */

static void request_header(struct rpc_stream *s, struct piece name, struct piece value)
{
	struct rpc_request *r = request_of(s);
	uint64_t number;

	if (piece_is(name, ":status")) {
		r->http_status = piece_u64(value, 999, &number) ? (int)number : 0;
	} else if (piece_is(name, "content-type")) {
		r->grpc = piece_starts(value, "application/grpc");
	} else if (piece_is(name, "grpc-status")) {
		r->status = piece_u64(value, RPC_UNAUTHENTICATED, &number) ? (int)number : RPC_UNKNOWN;
	} else if (piece_is(name, "grpc-message")) {
		grpc_message_decode(value, r->text, sizeof r->text);
	}
}

static void request_headers_end(struct rpc_stream *s)
{
	if (s->header_bytes > RPC_MAX_HEADER_BYTES)
		end_and_reset(request_of(s), RPC_RESOURCE_EXHAUSTED, "headers of the answer are too large");
}

static void request_data(struct rpc_stream *s, const uint8_t *bytes, size_t n)
{
	struct rpc_request *r = request_of(s);
	char text[128];
	size_t used;

	if (r->http_status != 200 || !r->grpc)
		return; /* a page for people: the end says what it was */
	while (n > 0 && !r->done) {
		enum grpc_next next = GRPC_BAD;
		bool room = rpc_stream_may_receive(s, n);

		if (room)
			next = grpc_feed(&s->in, bytes, n, &used);
		rpc_stream_account(s);
		if (!room) {
			end_and_reset(r, RPC_RESOURCE_EXHAUSTED, "too many bytes of unfinished answers");
		} else if (next == GRPC_BAD) {
			int status = grpc_deframer_status(&s->in, text, sizeof text);

			end_and_reset(r, status, text);
		} else if (next == GRPC_MESSAGE && r->reply.message != NULL) {
			r->reply.message(r->reply.arg, grpc_message(&s->in), s->in.length);
		}
		if (next == GRPC_BAD)
			return;
		bytes += used;
		n -= used;
	}
}

/* gRPC's table "HTTP to gRPC Status Code Mapping". */
static int status_of_http(int http_status)
{
	switch (http_status) {
	case 400: return RPC_INTERNAL;
	case 401: return RPC_UNAUTHENTICATED;
	case 403: return RPC_PERMISSION_DENIED;
	case 404: return RPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return RPC_UNAVAILABLE;
	default: return RPC_UNKNOWN;
	}
}

static void end_by_answer(struct rpc_request *r)
{
	char text[64];

	if (r->http_status != 200) {
		hm_fmt(text, sizeof text, "HTTP status %d", r->http_status);
		end(r, status_of_http(r->http_status), text);
	} else if (!r->grpc) {
		end(r, RPC_UNKNOWN, "the answer's content-type is not application/grpc");
	} else if (r->status < 0) {
		end(r, RPC_UNKNOWN, "the answer has no grpc-status");
	} else if (r->status == RPC_OK && !grpc_deframer_at_edge(&r->s.in)) {
		end(r, RPC_INTERNAL, "the answer ends within a message");
	} else {
		end(r, r->status, r->text);
	}
}

static void request_remote_end(struct rpc_stream *s)
{
	struct rpc_request *r = request_of(s);

	if (r->done)
		return;
	if (!s->local_ended) /* answered before it had our whole message */
		rpc_stream_reset(s, NGHTTP2_CANCEL);
	end_by_answer(r);
}

/* ---- ends without an answer ---- */

/* gRPC's table "HTTP2 to gRPC Status Code Mapping". */
static int status_of_http2(uint32_t error)
{
	switch (error) {
	case NGHTTP2_REFUSED_STREAM: return RPC_UNAVAILABLE;
	case NGHTTP2_CANCEL: return RPC_CANCELLED;
	case NGHTTP2_ENHANCE_YOUR_CALM: return RPC_RESOURCE_EXHAUSTED;
	case NGHTTP2_INADEQUATE_SECURITY: return RPC_PERMISSION_DENIED;
	default: return RPC_INTERNAL;
	}
}

static void request_closed(struct rpc_stream *s, uint32_t http2_error)
{
	struct rpc_request *r = request_of(s);
	char text[64];

	hm_fmt(text, sizeof text, "stream closed by HTTP/2 error %s", nghttp2_http2_strerror(http2_error));
	end(r, status_of_http2(http2_error), text);
}

static void request_deadline(struct rpc_stream *s)
{
	struct rpc_request *r = request_of(s);
	char text[64];

	hm_fmt(text, sizeof text, "no answer within %llu ms", (unsigned long long)r->timeout_ms);
	end_and_reset(r, RPC_DEADLINE_EXCEEDED, text);
}

static void request_shut(struct rpc_stream *s)
{
	end_and_reset(request_of(s), RPC_CANCELLED, "the client was closed");
}

static void request_lost(struct rpc_stream *s)
{
	end(request_of(s), RPC_UNAVAILABLE, "connection lost");
}

static int request_out_end(struct rpc_stream *s)
{
	(void)s;
	return 0;
}

const struct rpc_side rpc_client_side = {
	.header = request_header,
	.headers_end = request_headers_end,
	.data = request_data,
	.remote_end = request_remote_end,
	.out_end = request_out_end,
	.closed = request_closed,
	.deadline = request_deadline,
	.shut = request_shut,
	.lost = request_lost,
	.free = request_free,
};

/* ---- what callers use ---- */

static int submit(struct rpc_request *r, const char *path)
{
	char timeout[GRPC_TIMEOUT_TEXT] = "";
	nghttp2_nv nv[] = {
		RPC_NV(":method", "POST", 4),
		RPC_NV(":scheme", "http", 4),
		RPC_NV_TEXT(":path", path),
		RPC_NV(":authority", "localhost", 9),
		RPC_NV("content-type", "application/grpc", 16),
		RPC_NV("te", "trailers", 8),
		RPC_NV("grpc-accept-encoding", "identity", 8),
		RPC_NV("grpc-timeout", timeout, 0),
	};
	size_t n = HM_COUNT(nv);
	nghttp2_data_provider body = rpc_stream_provider(&r->s);

	if (r->timeout_ms > 0) {
		grpc_timeout_format(r->timeout_ms, timeout);
		nv[n - 1].valuelen = strlen(timeout);
	} else {
		n--;
	}
	return rpc_conn_note(r->s.conn, nghttp2_submit_request(r->s.conn->session, NULL, nv, n, &body, &r->s));
}

static int request_new(struct rpc_conn *c, const uint8_t *msg, size_t n, struct rpc_request **out)
{
	struct rpc_request *r = calloc(1, sizeof *r);

	if (r == NULL)
		return -HM_ENOMEM;
	rpc_stream_init(&r->s, c, 0, RPC_MAX_RECEIVE_BYTES);
	r->status = -1;
	r->s.out_ended = true; /* the request is this one message */
	if (!send_queue_push(&r->s.out, msg, n)) {
		request_free(&r->s);
		return -HM_ENOMEM;
	}
	rpc_stream_account(&r->s);
	*out = r;
	return 0;
}

static int check(const struct rpc_conn *c, size_t n, struct hm_err *e)
{
	if (n > RPC_MAX_SEND_BYTES)
		return hm_err_set(e, HM_ELIMIT, "message of %zu bytes is above gRPC's limit of %d", n,
				  RPC_MAX_SEND_BYTES);
	if (c->closing || c->failed || c->goaway)
		return hm_err_set(e, HM_EAGAIN, "the connection is ending: connect again");
	if (c->buffered + n > RPC_MAX_BUFFERED_BYTES)
		return hm_err_set(e, HM_ELIMIT, "%zu bytes wait on this connection: the server does not read",
				  c->buffered);
	return 0;
}

int rpc_conn_call(struct rpc_conn *c, uint64_t now_ms, const char *path, const uint8_t *msg, size_t n,
		  uint64_t timeout_ms, const struct rpc_reply *reply, struct rpc_request **out, struct hm_err *e)
{
	struct rpc_request *r;
	int32_t id;

	if (check(c, n, e) < 0)
		return hm_err_wrap(e, "call %s", path);
	if (request_new(c, msg, n, &r) < 0)
		return hm_err_set(e, HM_ENOMEM, "call %s: message of %zu bytes", path, n);
	r->reply = *reply;
	r->timeout_ms = timeout_ms;
	id = submit(r, path);
	if (id < 0) {
		request_free(&r->s);
		return hm_err_set(e, HM_ENOMEM, "call %s: %s", path, nghttp2_strerror(id));
	}
	r->s.id = id;
	if (timeout_ms > 0)
		rpc_stream_set_deadline(&r->s, now_ms + HM_MIN(timeout_ms, RPC_NEVER - 1 - now_ms));
	if (out != NULL)
		*out = r;
	rpc_conn_poke(c);
	return 0;
}

void rpc_request_cancel(struct rpc_request *r)
{
	end_and_reset(r, RPC_CANCELLED, "cancelled");
}
