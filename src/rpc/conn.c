#include "rpc/conn.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/limits.h"
#include "rpc/stream.h"

/* nghttp2 allocates through us, so that the allocation-failure tests reach inside it. */
static void *mem_malloc(size_t n, void *user)
{
	(void)user;
	return malloc(n);
}

static void mem_free(void *p, void *user)
{
	(void)user;
	free(p);
}

static void *mem_calloc(size_t n, size_t size, void *user)
{
	(void)user;
	return calloc(n, size);
}

static void *mem_realloc(void *p, size_t n, void *user)
{
	(void)user;
	return realloc(p, n);
}

int rpc_conn_note(struct rpc_conn *c, int r)
{
	if (r < 0 && nghttp2_is_fatal(r))
		c->failed = true;
	return r;
}

void rpc_conn_poke(struct rpc_conn *c)
{
	if (c->on_output != NULL)
		c->on_output(c->on_output_arg);
}

/* ---- from nghttp2 ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct rpc_conn *c = user;
	struct rpc_stream *s;

	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = c->closing ? NULL : c->side->open(c, f->hd.stream_id);
	if (s == NULL) {
		rpc_conn_note(c, nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, f->hd.stream_id,
							   NGHTTP2_REFUSED_STREAM));
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return rpc_conn_note(c, nghttp2_session_set_stream_user_data(session, f->hd.stream_id, s));
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct rpc_conn *c = user;
	struct rpc_stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);

	(void)flags;
	if (s == NULL)
		return 0;
	s->header_bytes += name_n + value_n + 32;
	if (s->header_bytes <= RPC_MAX_HEADER_BYTES)
		c->side->header(s, (struct piece) { (const char *)name, name_n },
				(struct piece) { (const char *)value, value_n });
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user)
{
	struct rpc_conn *c = user;
	struct rpc_stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	if (s != NULL)
		c->side->data(s, bytes, n);
	return 0;
}

/* A peer that opens and resets calls makes us work and pays nothing (CVE-2023-44487). Our own resets for its errors
 * count too (CVE-2025-8671). */
static void count_reset(struct rpc_conn *c)
{
	if (c->service == NULL || c->closing || rate_take(&c->resets, c->now_ms))
		return;
	c->closing = true;
	rpc_conn_note(c, nghttp2_session_terminate_session(c->session, NGHTTP2_ENHANCE_YOUR_CALM));
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct rpc_conn *c = user;
	struct rpc_stream *s;

	switch (f->hd.type) {
	case NGHTTP2_SETTINGS:
		c->greeted = c->greeted || (f->hd.flags & NGHTTP2_FLAG_ACK) == 0;
		if (c->greeted)
			c->hello_by_ms = RPC_NEVER;
		return 0;
	case NGHTTP2_GOAWAY: c->goaway = true; return 0;
	case NGHTTP2_RST_STREAM: count_reset(c); return 0;
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA: break;
	default: return 0;
	}
	s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (s != NULL && f->hd.type == NGHTTP2_HEADERS)
		c->side->headers_end(s);
	if (s != NULL && f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		s->remote_ended = true;
		c->side->remote_end(s);
	}
	return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct rpc_conn *c = user;
	struct rpc_stream *s;

	if (f->hd.type == NGHTTP2_RST_STREAM && f->rst_stream.error_code != NGHTTP2_NO_ERROR)
		count_reset(c);
	if (c->service == NULL || f->hd.type != NGHTTP2_HEADERS || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	/* Answered before the request was complete: tell the peer to spare us the rest (RFC 9113, 8.1). */
	if (s != NULL && !s->remote_ended)
		rpc_stream_reset(s, NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t http2_error, void *user)
{
	struct rpc_conn *c = user;
	struct rpc_stream *s = nghttp2_session_get_stream_user_data(session, id);

	if (s == NULL)
		return 0;
	nghttp2_session_set_stream_user_data(session, id, NULL);
	c->side->closed(s, http2_error);
	c->side->free(s);
	return 0;
}

/* ---- life ---- */

static nghttp2_option *make_options(bool server)
{
	nghttp2_option *o;

	if (nghttp2_option_new(&o) != 0)
		return NULL;
	/* kubelet before 1.26 sends the socket's path as :authority, which nghttp2's check of headers refuses; call.c
	 * does its own checks. */
	nghttp2_option_set_no_http_messaging(o, server);
	nghttp2_option_set_max_outbound_ack(o, RPC_MAX_OUTBOUND_ACKS);
	/* nghttp2's own limiter reads the clock and closes at 33 a second; count_reset is ours. */
	nghttp2_option_set_stream_reset_rate_limit(o, UINT64_MAX / 2, UINT64_MAX / 2);
	return o;
}

static nghttp2_session *make_session(struct rpc_conn *c, bool server)
{
	nghttp2_mem mem = { NULL, mem_malloc, mem_free, mem_calloc, mem_realloc };
	nghttp2_option *options = make_options(server);
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_session *session = NULL;

	if (options != NULL && nghttp2_session_callbacks_new(&cb) == 0) {
		nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
		nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
		nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
		if ((server ? nghttp2_session_server_new3 : nghttp2_session_client_new3)(&session, cb, c, options,
											 &mem) != 0)
			session = NULL;
	}
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(options);
	return session;
}

static bool greet(struct rpc_conn *c, bool server)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, RPC_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RPC_MAX_HEADER_BYTES },
		server ? (nghttp2_settings_entry) { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, RPC_MAX_STREAMS }
		       : (nghttp2_settings_entry) { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};

	return nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, HM_COUNT(settings)) == 0 &&
	       nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, RPC_WINDOW_BYTES) == 0;
}

static int conn_new(const struct rpc_service *service, uint64_t now_ms, struct rpc_conn **out, struct hm_err *e)
{
	hm_auto(rpc_conn) *c = calloc(1, sizeof *c);
	bool server = service != NULL;

	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "gRPC connection");
	c->service = service;
	c->side = server ? &rpc_server_side : &rpc_client_side;
	c->now_ms = now_ms;
	c->hello_by_ms = now_ms + RPC_SETTINGS_TIMEOUT_MS;
	c->next_deadline_ms = RPC_NEVER;
	list_init(&c->streams);
	rate_init(&c->resets, RPC_MAX_RESETS_PER_SECOND, 1000, RPC_MAX_RESET_BURST, now_ms);
	c->session = make_session(c, server);
	if (c->session == NULL || !greet(c, server))
		return hm_err_set(e, HM_ENOMEM, "gRPC connection");
	*out = HM_STEAL(c);
	return 0;
}

int rpc_conn_new_server(const struct rpc_service *service, uint64_t now_ms, struct rpc_conn **out, struct hm_err *e)
{
	return conn_new(service, now_ms, out, e);
}

int rpc_conn_new_client(uint64_t now_ms, struct rpc_conn **out, struct hm_err *e)
{
	return conn_new(NULL, now_ms, out, e);
}

void rpc_conn_free(struct rpc_conn *c)
{
	if (c == NULL)
		return;
	LIST_FOR_EACH (&c->streams, it)
		c->side->free(HM_CONTAINER(it, struct rpc_stream, link));
	nghttp2_session_del(c->session);
	free(c);
}

void rpc_conn_on_output(struct rpc_conn *c, void (*cb)(void *), void *arg)
{
	c->on_output = cb;
	c->on_output_arg = arg;
}

/* ---- bytes and time ---- */

int rpc_conn_feed(struct rpc_conn *c, const uint8_t *in, size_t n, uint64_t now_ms)
{
	ssize_t r;

	c->now_ms = now_ms;
	if (c->failed)
		return -HM_EPROTO;
	r = nghttp2_session_mem_recv(c->session, in, n);
	if (r < 0)
		c->failed = true;
	if (c->failed)
		return r == NGHTTP2_ERR_NOMEM ? -HM_ENOMEM : -HM_EPROTO;
	return 0;
}

size_t rpc_conn_pull(struct rpc_conn *c, uint8_t *out, size_t cap)
{
	size_t n = 0;

	while (n < cap && !c->failed) {
		size_t k;

		if (c->chunk_left == 0) {
			ssize_t r = nghttp2_session_mem_send(c->session, &c->chunk);

			if (r < 0)
				c->failed = true;
			if (r <= 0)
				break;
			c->chunk_left = (size_t)r;
		}
		k = HM_MIN(c->chunk_left, cap - n);
		memcpy(out + n, c->chunk, k);
		n += k;
		c->chunk += k;
		c->chunk_left -= k;
	}
	return n;
}

void rpc_conn_tick(struct rpc_conn *c, uint64_t now_ms)
{
	uint64_t next = RPC_NEVER;

	c->now_ms = now_ms;
	if (now_ms >= c->hello_by_ms)
		c->failed = true;
	if (now_ms < c->next_deadline_ms)
		return;
	c->next_deadline_ms = RPC_NEVER;
	LIST_FOR_EACH (&c->streams, it) {
		struct rpc_stream *s = HM_CONTAINER(it, struct rpc_stream, link);

		if (now_ms >= s->deadline_ms) {
			s->deadline_ms = RPC_NEVER;
			c->side->deadline(s);
		}
		next = HM_MIN(next, s->deadline_ms);
	}
	/* A callback may have set an earlier one. */
	c->next_deadline_ms = HM_MIN(next, c->next_deadline_ms);
}

uint64_t rpc_conn_next_tick_ms(const struct rpc_conn *c)
{
	return HM_MIN(c->hello_by_ms, c->next_deadline_ms);
}

bool rpc_conn_is_over(const struct rpc_conn *c)
{
	return c->failed || (c->chunk_left == 0 && !nghttp2_session_want_read(c->session) &&
			     !nghttp2_session_want_write(c->session));
}

bool rpc_conn_is_greeted(const struct rpc_conn *c)
{
	return c->greeted;
}

size_t rpc_conn_open_streams(const struct rpc_conn *c)
{
	size_t n = 0;

	LIST_FOR_EACH (&c->streams, it)
		n++;
	return n;
}

void rpc_conn_close(struct rpc_conn *c)
{
	c->closing = true;
	LIST_FOR_EACH (&c->streams, it)
		c->side->shut(HM_CONTAINER(it, struct rpc_stream, link));
	if (!c->failed) /* not terminate_session: what was queued before is still sent */
		rpc_conn_note(c, nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
						       nghttp2_session_get_last_proc_stream_id(c->session),
						       NGHTTP2_NO_ERROR, NULL, 0));
}

void rpc_conn_lost(struct rpc_conn *c)
{
	c->closing = true;
	c->failed = true;
	LIST_FOR_EACH (&c->streams, it)
		c->side->lost(HM_CONTAINER(it, struct rpc_stream, link));
}
