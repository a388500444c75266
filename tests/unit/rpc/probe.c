#include "unit/rpc/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_HEADERS = 600 };

static size_t to_nv(const struct probe_header *headers, nghttp2_nv *nv)
{
	size_t n = 0;

	for (; headers[n].name != NULL; n++) {
		assert_true(n < MAX_HEADERS);
		nv[n] = (nghttp2_nv) { (uint8_t *)(uintptr_t)headers[n].name, (uint8_t *)(uintptr_t)headers[n].value,
				       strlen(headers[n].name), strlen(headers[n].value), NGHTTP2_NV_FLAG_NONE };
	}
	return n;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct probe *p = user;
	size_t n = HM_MIN(cap, p->body_n - p->body_at);
	nghttp2_nv nv[MAX_HEADERS];

	(void)source;
	if (n == 0 && p->keep_open)
		return NGHTTP2_ERR_DEFERRED;
	if (n > 0)
		memcpy(buf, p->body + p->body_at, n);
	p->body_at += n;
	if (p->body_at < p->body_n || p->keep_open)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (p->answer != NULL && p->answer->trailers != NULL) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, id, nv, to_nv(p->answer->trailers, nv));
	}
	return (ssize_t)n;
}

static void answer(struct probe *p, int32_t id)
{
	nghttp2_data_provider body = { .read_callback = read_body };
	nghttp2_nv nv[MAX_HEADERS];
	size_t n = to_nv(p->answer->head, nv);

	p->body = p->answer->body;
	p->body_n = p->answer->body_n;
	p->body_at = 0;
	nghttp2_submit_response(p->session, id, nv, n, p->body != NULL ? &body : NULL);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct probe *p = user;

	(void)session, (void)f, (void)flags;
	if (p->answer == NULL)
		str_addf(&p->log, "h %.*s: %.*s;", (int)name_n, (const char *)name, (int)value_n, (const char *)value);
	else if (p->log_headers && name_n > 5 && memcmp(name, "grpc-", 5) == 0)
		str_addf(&p->log, "h %.*s: %.*s;", (int)name_n, (const char *)name, (int)value_n, (const char *)value);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct probe *p = user;

	(void)session;
	if (f->hd.type == NGHTTP2_DATA)
		str_addf(&p->log, "data %zu;", f->hd.length);
	if (f->hd.type == NGHTTP2_RST_STREAM)
		str_addf(&p->log, "rst %u;", f->rst_stream.error_code);
	if (f->hd.type == NGHTTP2_GOAWAY)
		str_addf(&p->log, "goaway %u;", f->goaway.error_code);
	if (f->hd.type == NGHTTP2_PING && f->hd.flags & NGHTTP2_FLAG_ACK)
		str_add(&p->log, "pong;");
	if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) && f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		str_add(&p->log, "end;");
		if (p->answer != NULL && !p->answer->early)
			answer(p, f->hd.stream_id);
	}
	if (f->hd.type == NGHTTP2_HEADERS && p->answer != NULL && p->answer->early)
		answer(p, f->hd.stream_id);
	return 0;
}

void probe_init(struct probe *p, bool server)
{
	nghttp2_session_callbacks *cb;
	nghttp2_option *options;

	*p = (struct probe) { 0 };
	assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
	assert_int_equal(nghttp2_option_new(&options), 0);
	nghttp2_option_set_no_http_messaging(options, 1);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	assert_int_equal(
		(server ? nghttp2_session_server_new2 : nghttp2_session_client_new2)(&p->session, cb, p, options), 0);
	nghttp2_option_del(options);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, NULL, 0);
}

void probe_fini(struct probe *p)
{
	nghttp2_session_del(p->session);
	str_fini(&p->log);
}

int32_t probe_request(struct probe *p, const struct probe_header *headers)
{
	nghttp2_data_provider body = { .read_callback = read_body };
	nghttp2_nv nv[MAX_HEADERS];
	size_t n = to_nv(headers, nv);
	int32_t id;

	p->body_at = 0;
	id = nghttp2_submit_request(p->session, NULL, nv, n, p->body != NULL ? &body : NULL, NULL);
	assert_true(id > 0);
	return id;
}

bool probe_run(struct probe *p, struct rpc_conn *c, uint64_t now_ms)
{
	uint8_t buf[65536];
	const uint8_t *out;
	bool moved = true;

	while (moved) {
		ssize_t n = nghttp2_session_mem_send(p->session, &out);
		size_t k;

		assert_true(n >= 0);
		if (n > 0 && rpc_conn_feed(c, out, (size_t)n, now_ms) < 0)
			return false;
		k = rpc_conn_pull(c, buf, sizeof buf);
		if (k > 0)
			assert_true(nghttp2_session_mem_recv(p->session, buf, k) == (ssize_t)k);
		moved = n > 0 || k > 0;
	}
	return true;
}
