#include "io/http_answer.h"

#include <string.h>

#include "core/cursor.h"

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 301, "Moved Permanently" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 413, "Request Entity Too Large" },
		{ 431, "Request Header Fields Too Large" },
		{ 503, "Service Unavailable" },
	};

	for (size_t i = 0; i < HM_COUNT(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Internal Server Error";
}

static void write_answer(struct str *out, int status, const struct str *body, bool head)
{
	str_addf(out,
		 "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
		 "Connection: close\r\n%s\r\n",
		 status, http_reason(status), body->n, status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (!head)
		str_add_n(out, str_text(body), body->n);
}

static const struct http_page *find_page(const struct http_page *pages, size_t count, struct piece path)
{
	const char *query = memchr(path.p, '?', path.n);

	if (query != NULL)
		path.n = (size_t)(query - path.p);
	for (size_t i = 0; i < count; i++)
		if (piece_is(path, pages[i].path))
			return &pages[i];
	return NULL;
}

/* Where the peer knows no chunks the page ends with the connection. */
static void write_parts_head(struct str *out, bool chunked)
{
	str_addf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n%sConnection: close\r\n\r\n",
		 chunked ? "Transfer-Encoding: chunked\r\n" : "");
}

void http_rest_end(struct http_rest *r)
{
	if (r->parts != NULL && r->page != NULL)
		r->parts->end(r->page);
	*r = (struct http_rest) { 0 };
}

void http_rest_add(struct http_rest *r, struct str *out)
{
	hm_auto_str part = { 0 };
	bool more = r->parts->add(r->page, &part);

	if (r->chunked && part.n > 0)
		str_addf(out, "%zx\r\n", part.n);
	str_add_n(out, str_text(&part), part.n);
	if (r->chunked && part.n > 0)
		str_add(out, "\r\n");
	if (r->chunked && !more)
		str_add(out, "0\r\n\r\n");
	out->failed |= str_failed(&part);
	if (!more)
		http_rest_end(r);
}

static void answer(const struct http_page *pages, size_t count, void *arg, const char *in, size_t n, struct str *out,
		   struct http_rest *rest)
{
	hm_auto_str body = { 0 };
	struct cur whole = cur_of(in, n);
	struct piece line = cur_line(&whole);
	struct cur at = cur_of(line.p, line.n);
	struct piece method = cur_until(&at, ' '), path = cur_until(&at, ' '), version = cur_rest(&at);
	bool head = piece_is(method, "HEAD");
	const struct http_page *page = NULL;
	int status;

	if (at.bad || path.n == 0 || path.p[0] != '/' || !piece_starts(version, "HTTP/1."))
		status = 400;
	else if (!head && !piece_is(method, "GET"))
		status = 405;
	else if ((page = find_page(pages, count, path)) == NULL)
		status = 404;
	else if (page->parts == NULL)
		status = page->get(arg, &body);
	else if (head || (rest->page = page->parts->begin(arg)) != NULL) {
		rest->parts = head ? NULL : page->parts;
		rest->chunked = !piece_starts(version, "HTTP/1.0");
		write_parts_head(out, rest->chunked);
		return;
	} else
		status = 503;
	if (str_failed(&body))
		status = 503;
	if (body.n == 0)
		str_addf(&body, "%s\n", http_reason(status));
	write_answer(out, status, &body, head);
}

bool http_answer(const struct http_page *pages, size_t count, void *arg, const char *in, size_t n, struct str *out,
		 struct http_rest *rest)
{
	*rest = (struct http_rest) { 0 };
	if (memmem(in, n, "\r\n\r\n", 4) != NULL || memmem(in, n, "\n\n", 2) != NULL)
		answer(pages, count, arg, in, n, out, rest);
	else if (n > HTTP_MAX_REQUEST_BYTES)
		write_answer(out, 431, &(struct str) { 0 }, false);
	else
		return false;
	return true;
}
