#include "rpc/stream.h"

#include "rpc/limits.h"

void rpc_stream_init(struct rpc_stream *s, struct rpc_conn *c, int32_t id, size_t max_bytes)
{
	*s = (struct rpc_stream) { .conn = c, .id = id, .deadline_ms = RPC_NEVER };
	grpc_deframer_init(&s->in, max_bytes);
	send_queue_init(&s->out);
	link_append(&c->streams, &s->link);
}

void rpc_stream_fini(struct rpc_stream *s)
{
	grpc_deframer_fini(&s->in);
	send_queue_clear(&s->out);
	rpc_stream_account(s);
	link_remove(&s->link);
}

void rpc_stream_account(struct rpc_stream *s)
{
	size_t now = s->in.cap + s->out.bytes;

	s->conn->buffered += now - s->charged; /* may wrap on the way, the sum does not */
	s->charged = now;
}

bool rpc_stream_may_send(const struct rpc_stream *s, size_t n)
{
	return s->conn->buffered <= RPC_MAX_BUFFERED_BYTES && n <= RPC_MAX_BUFFERED_BYTES - s->conn->buffered;
}

bool rpc_stream_may_receive(const struct rpc_stream *s, size_t n)
{
	return s->in.have + n <= s->in.cap || rpc_stream_may_send(s, n);
}

void rpc_stream_set_deadline(struct rpc_stream *s, uint64_t at_ms)
{
	s->deadline_ms = at_ms;
	if (at_ms < s->conn->next_deadline_ms)
		s->conn->next_deadline_ms = at_ms;
}

void rpc_stream_resume(struct rpc_stream *s)
{
	if (!s->conn->failed)
		rpc_conn_note(s->conn, nghttp2_session_resume_data(s->conn->session, s->id));
	rpc_conn_poke(s->conn);
}

void rpc_stream_reset(struct rpc_stream *s, uint32_t http2_error)
{
	if (!s->conn->failed)
		rpc_conn_note(s->conn,
			      nghttp2_submit_rst_stream(s->conn->session, NGHTTP2_FLAG_NONE, s->id, http2_error));
	rpc_conn_poke(s->conn);
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap, uint32_t *flags,
			nghttp2_data_source *source, void *user)
{
	struct rpc_stream *s = source->ptr;
	size_t n = send_queue_read(&s->out, buf, cap);
	int more;

	(void)session, (void)id, (void)user;
	rpc_stream_account(s);
	if (!send_queue_empty(&s->out))
		return (ssize_t)n;
	if (!s->out_ended)
		return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	more = s->conn->side->out_end(s);
	if (more < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* becomes RST_STREAM INTERNAL_ERROR */
	*flags |= NGHTTP2_DATA_FLAG_EOF | (uint32_t)more;
	s->local_ended = true;
	return (ssize_t)n;
}

nghttp2_data_provider rpc_stream_provider(struct rpc_stream *s)
{
	return (nghttp2_data_provider) { .source.ptr = s, .read_callback = read_out };
}
