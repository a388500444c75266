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

static int get_page(const struct http_page *pages, size_t count, void *arg, struct piece path, struct str *body)
{
	const char *query = memchr(path.p, '?', path.n);

	if (query != NULL)
		path.n = (size_t)(query - path.p);
	for (size_t i = 0; i < count; i++)
		if (piece_is(path, pages[i].path))
			return pages[i].get(arg, body);
	return 404;
}

static void answer(const struct http_page *pages, size_t count, void *arg, const char *in, size_t n, struct str *out)
{
	hm_auto_str body = { 0 };
	struct cur whole = cur_of(in, n);
	struct piece line = cur_line(&whole);
	struct cur at = cur_of(line.p, line.n);
	struct piece method = cur_until(&at, ' '), path = cur_until(&at, ' '), version = cur_rest(&at);
	bool head = piece_is(method, "HEAD");
	int status;

	if (at.bad || path.n == 0 || path.p[0] != '/' || !piece_starts(version, "HTTP/1."))
		status = 400;
	else if (!head && !piece_is(method, "GET"))
		status = 405;
	else
		status = get_page(pages, count, arg, path, &body);
	if (str_failed(&body))
		status = 503;
	if (body.n == 0)
		str_addf(&body, "%s\n", http_reason(status));
	write_answer(out, status, &body, head);
}

bool http_answer(const struct http_page *pages, size_t count, void *arg, const char *in, size_t n, struct str *out)
{
	if (memmem(in, n, "\r\n\r\n", 4) != NULL || memmem(in, n, "\n\n", 2) != NULL)
		answer(pages, count, arg, in, n, out);
	else if (n > HTTP_MAX_REQUEST_BYTES)
		write_answer(out, 431, &(struct str) { 0 }, false);
	else
		return false;
	return true;
}
