/* The server's side of a stream. A call's way:
 *
 * 1. HEADERS: what cannot be served (no gRPC, compressed, unknown method, ...) is answered at once.
 * 2. DATA: one message is collected.
 * 3. END_STREAM: the method's handler runs. Without or with more than one message: INTERNAL.
 * 4. The handler sends and finishes, at once or later; or the deadline, the peer or rpc_conn_close ends the call, and
 *    the handler hears `gone`. From then on the handle is dead for the handler.
 * 5. What is queued goes out, trailers last; nghttp2 closes the stream and the memory goes. */
#include "rpc/server.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "rpc/grpc_text.h"
#include "rpc/limits.h"
#include "rpc/stream.h"

enum { PATH_SHOWN = 96 }; /* of an unknown method, in the message */

struct rpc_call {
	struct rpc_stream s; /* first: streams are cast to calls */
	const struct rpc_method *method;
	void *data;
	struct {
		bool post, grpc, compressed, bad_timeout;
		char path[PATH_SHOWN];
	} head;
	uint64_t timeout_ms;
	bool head_done;
	bool have_message;
	bool delivered; /* the handler knows of it */
	bool finished;  /* the handler's part is over */
	bool answering; /* HEADERS are queued */
	int status;
	struct str message; /* percent-encoded */
};

static struct rpc_call *call_of(struct rpc_stream *s)
{
	return HM_CONTAINER(s, struct rpc_call, s);
}

static struct rpc_stream *call_open(struct rpc_conn *c, int32_t id)
{
	struct rpc_call *call = calloc(1, sizeof *call);

	if (call == NULL)
		return NULL;
	rpc_stream_init(&call->s, c, id, RPC_MAX_RECEIVE_BYTES);
	call->timeout_ms = RPC_NEVER;
	return &call->s;
}

static void call_free(struct rpc_stream *s)
{
	struct rpc_call *call = call_of(s);

	rpc_stream_fini(s);
	str_fini(&call->message);
	free(call);
}

/* ---- answers ---- */

enum { TRAILER_FIELDS = 2 };

struct trailers {
	char status[12];
	nghttp2_nv nv[TRAILER_FIELDS];
	size_t n;
};

static void make_trailers(const struct rpc_call *call, struct trailers *t)
{
	hm_fmt(t->status, sizeof t->status, "%d", call->status);
	t->nv[0] = (nghttp2_nv)RPC_NV_TEXT("grpc-status", t->status);
	t->nv[1] = (nghttp2_nv)RPC_NV("grpc-message", call->message.p, call->message.n);
	t->n = call->message.n > 0 ? 2 : 1;
}

static void submit(struct rpc_call *call, const nghttp2_nv *nv, size_t n, const nghttp2_data_provider *body)
{
	struct rpc_conn *c = call->s.conn;

	call->answering = true;
	if (c->failed)
		return;
	if (rpc_conn_note(c, nghttp2_submit_response(c->session, call->s.id, nv, n, body)) < 0)
		rpc_stream_reset(&call->s, NGHTTP2_INTERNAL_ERROR);
	rpc_conn_poke(c);
}

#define HEAD_200 RPC_NV(":status", "200", 3), RPC_NV("content-type", "application/grpc", 16)
#define ACCEPT_IDENTITY RPC_NV("grpc-accept-encoding", "identity", 8)

static void start_answer(struct rpc_call *call)
{
	static const nghttp2_nv head[] = { HEAD_200, ACCEPT_IDENTITY };
	nghttp2_data_provider body = rpc_stream_provider(&call->s);

	submit(call, head, HM_COUNT(head), &body);
}

/* An answer without a message is one HEADERS frame ("Trailers-Only"). */
static void submit_trailers_only(struct rpc_call *call)
{
	struct trailers t;
	nghttp2_nv nv[3 + TRAILER_FIELDS] = { HEAD_200, ACCEPT_IDENTITY };

	make_trailers(call, &t);
	memcpy(nv + 3, t.nv, sizeof t.nv);
	submit(call, nv, 3 + t.n, NULL);
}

static int call_out_end(struct rpc_stream *s)
{
	struct trailers t;

	make_trailers(call_of(s), &t);
	if (rpc_conn_note(s->conn, nghttp2_submit_trailer(s->conn->session, s->id, t.nv, t.n)) < 0)
		return -HM_ENOMEM;
	return NGHTTP2_DATA_FLAG_NO_END_STREAM;
}

/* The answer's end, behind what is queued. */
static void end_answer(struct rpc_call *call, int status, const char *text)
{
	call->finished = true;
	call->status = status;
	call->s.deadline_ms = RPC_NEVER;
	call->s.out_ended = true;
	if (!call->delivered) { /* else the handler may still be reading it */
		grpc_deframer_fini(&call->s.in);
		rpc_stream_account(&call->s);
	}
	if (text != NULL)
		grpc_message_encode(&call->message, text);
	if (str_failed(&call->message)) /* the status without its text is better than none */
		str_fini(&call->message);
	if (call->answering)
		rpc_stream_resume(&call->s);
	else
		submit_trailers_only(call);
}

static void end_plain_http(struct rpc_call *call, const char *http_status)
{
	const nghttp2_nv nv[] = { RPC_NV_TEXT(":status", http_status) };

	call->finished = true;
	submit(call, nv, 1, NULL);
}

/* Tells the handler that the call ended without it. */
static void call_gone(struct rpc_call *call)
{
	bool tell = call->delivered && !call->finished && call->method->gone != NULL;

	call->finished = true;
	if (tell)
		call->method->gone(call, call->s.conn->service->arg);
}

static void end_early(struct rpc_call *call, int status, const char *text)
{
	if (call->finished)
		return;
	call_gone(call);
	send_queue_drop_unstarted(&call->s.out);
	end_answer(call, status, text);
}

/* ---- the request ---- */

static const struct rpc_method *find_method(const struct rpc_service *service, struct piece path)
{
	for (size_t i = 0; i < service->count; i++) {
		if (piece_is(path, service->methods[i].path))
			return &service->methods[i];
	}
	return NULL;
}

static bool is_grpc_type(struct piece value)
{
	static const char type[] = "application/grpc";
	size_t n = sizeof type - 1;

	return piece_starts(value, type) && (value.n == n || value.p[n] == '+' || value.p[n] == ';');
}

static void take_path(struct rpc_call *call, struct piece value)
{
	value.n = HM_MIN(value.n, (size_t)PATH_SHOWN - 1);
	if (!piece_copy(value, call->head.path, sizeof call->head.path))
		call->head.path[0] = '\0';
}

static void call_header(struct rpc_stream *s, struct piece name, struct piece value)
{
	struct rpc_call *call = call_of(s);

	if (call->head_done)
		return; /* trailers of a request: nothing of ours */
	if (piece_is(name, ":path")) {
		call->method = find_method(s->conn->service, value);
		if (call->method == NULL)
			take_path(call, value);
	} else if (piece_is(name, ":method")) {
		call->head.post = piece_is(value, "POST");
	} else if (piece_is(name, "content-type")) {
		call->head.grpc = is_grpc_type(value);
	} else if (piece_is(name, "grpc-encoding")) {
		call->head.compressed = !piece_is(value, "identity");
	} else if (piece_is(name, "grpc-timeout")) {
		call->head.bad_timeout = !grpc_timeout_parse(value, &call->timeout_ms);
	}
}

static void call_headers_end(struct rpc_stream *s)
{
	struct rpc_call *call = call_of(s);
	char text[PATH_SHOWN + 32];

	if (call->head_done)
		return;
	call->head_done = true;
	if (s->header_bytes > RPC_MAX_HEADER_BYTES) {
		hm_fmt(text, sizeof text, "headers of the call are above %d bytes", RPC_MAX_HEADER_BYTES);
		end_answer(call, RPC_RESOURCE_EXHAUSTED, text);
	} else if (!call->head.post) {
		end_plain_http(call, "405");
	} else if (!call->head.grpc) {
		end_plain_http(call, "415");
	} else if (call->head.compressed) {
		end_answer(call, RPC_UNIMPLEMENTED,
			   "compressed messages are not supported: use grpc-encoding identity");
	} else if (call->method == NULL) {
		hm_fmt(text, sizeof text, "unknown method %s", call->head.path);
		end_answer(call, RPC_UNIMPLEMENTED, text);
	} else if (call->head.bad_timeout) {
		end_answer(call, RPC_INTERNAL, "malformed grpc-timeout");
	} else if (call->timeout_ms != RPC_NEVER) {
		rpc_stream_set_deadline(s, s->conn->now_ms + call->timeout_ms);
	}
}

static void end_bad_request(struct rpc_call *call)
{
	char text[128];
	int status = grpc_deframer_status(&call->s.in, text, sizeof text);

	end_answer(call, status, text);
}

static void call_data(struct rpc_stream *s, const uint8_t *bytes, size_t n)
{
	struct rpc_call *call = call_of(s);
	enum grpc_next next;
	size_t used;

	if (call->finished || call->delivered || n == 0)
		return;
	if (call->have_message) {
		end_answer(call, RPC_INTERNAL, "more than one message in the request");
		return;
	}
	if (!rpc_stream_may_receive(s, n)) {
		end_answer(call, RPC_RESOURCE_EXHAUSTED, "too many bytes of unfinished calls on this connection");
		return;
	}
	next = grpc_feed(&s->in, bytes, n, &used);
	rpc_stream_account(s);
	if (next == GRPC_BAD) {
		end_bad_request(call);
	} else if (next == GRPC_MESSAGE) {
		call->have_message = true;
		call_data(s, bytes + used, n - used); /* at most once more: have_message */
	}
}

static void call_remote_end(struct rpc_stream *s)
{
	struct rpc_call *call = call_of(s);

	if (call->finished || call->delivered)
		return;
	if (!call->have_message && grpc_deframer_at_edge(&s->in)) {
		end_answer(call, RPC_INTERNAL, "no message in the request");
	} else if (!call->have_message) {
		end_bad_request(call);
	} else if (!s->conn->closing) {
		call->delivered = true;
		call->method->call(call, grpc_message(&s->in), s->in.length, s->conn->service->arg);
		grpc_deframer_fini(&s->in);
		rpc_stream_account(s);
	}
}

/* ---- ends that the handler did not choose ---- */

static void call_closed(struct rpc_stream *s, uint32_t http2_error)
{
	(void)http2_error;
	call_gone(call_of(s));
}

static void call_deadline(struct rpc_stream *s)
{
	end_early(call_of(s), RPC_DEADLINE_EXCEEDED, "deadline exceeded");
}

static void call_shut(struct rpc_stream *s)
{
	end_early(call_of(s), RPC_UNAVAILABLE, "the server is shutting down");
}

static void call_lost(struct rpc_stream *s)
{
	call_gone(call_of(s));
}

const struct rpc_side rpc_server_side = {
	.open = call_open,
	.header = call_header,
	.headers_end = call_headers_end,
	.data = call_data,
	.remote_end = call_remote_end,
	.out_end = call_out_end,
	.closed = call_closed,
	.deadline = call_deadline,
	.shut = call_shut,
	.lost = call_lost,
	.free = call_free,
};

/* ---- what handlers use ---- */

static int send_message(struct rpc_call *call, const uint8_t *msg, size_t n, bool latest, struct hm_err *e)
{
	struct rpc_stream *s = &call->s;

	if (n > RPC_MAX_SEND_BYTES)
		return hm_err_set(e, HM_ELIMIT, "message of %zu bytes is above gRPC's limit of %d", n,
				  RPC_MAX_SEND_BYTES);
	if (call->finished)
		return hm_err_set(e, HM_EAGAIN, "the call has ended");
	if (!rpc_stream_may_send(s, n))
		return hm_err_set(e, HM_ELIMIT, "%zu bytes wait on this connection: the peer does not read",
				  s->conn->buffered);
	if (!(latest ? send_queue_push_latest : send_queue_push)(&s->out, msg, n))
		return hm_err_set(e, HM_ENOMEM, "message of %zu bytes", n);
	rpc_stream_account(s);
	if (call->answering)
		rpc_stream_resume(s);
	else
		start_answer(call);
	return 0;
}

int rpc_call_send(struct rpc_call *call, const uint8_t *msg, size_t n, struct hm_err *e)
{
	return send_message(call, msg, n, false, e);
}

int rpc_call_send_latest(struct rpc_call *call, const uint8_t *msg, size_t n, struct hm_err *e)
{
	return send_message(call, msg, n, true, e);
}

void rpc_call_finish(struct rpc_call *call, int status, const char *text)
{
	if (!call->finished)
		end_answer(call, status, text);
}

void rpc_call_reply(struct rpc_call *call, const uint8_t *msg, size_t n)
{
	struct hm_err e;

	if (rpc_call_send(call, msg, n, &e) < 0)
		rpc_call_fail(call, &e);
	else
		rpc_call_finish(call, RPC_OK, NULL);
}

void rpc_call_fail(struct rpc_call *call, const struct hm_err *e)
{
	rpc_call_finish(call, rpc_status_of(e->code), e->msg);
}

void rpc_call_set_data(struct rpc_call *call, void *data)
{
	call->data = data;
}

void *rpc_call_data(const struct rpc_call *call)
{
	return call->data;
}
