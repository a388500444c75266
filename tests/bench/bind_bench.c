/* bind_bench IN_FLIGHT REQUESTS ANSWERS [CA CERTIFICATE KEY]: sends a file of requests, one a line as METHOD URL BODY,
 * so many at a time over connections that are kept, and does nothing else. ANSWERS has STATUS BODY for each, in the
 * same order. Prints one line of JSON: the seconds from the first to the last, and how many were answered by 2xx.
 *
 * It is the bare client that a figure is held against, and who asks for /filter and /bind. As little as libcurl can do:
 * handles are made once, HTTP/2 where the server has it. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/str.h"
#include "core/num.h"
#include "io/file.h"

enum { MOST_IN_FLIGHT = 100, MOST_BYTES = 256 << 20, WAIT_MS = 1000 };

struct request {
	char *method, *url, *body; /* in the file's text */
	long status;
	struct str answer;
};

struct bench {
	struct str text;
	struct request *requests;
	size_t count, cap, next, good;
	CURLM *multi;
	struct curl_slist *headers;
	CURL *idle[MOST_IN_FLIGHT];
	size_t idle_count, in_flight;
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool read_requests(struct bench *b, const char *path)
{
	struct hm_err e;
	char *rest, *line;

	if (file_read(path, MOST_BYTES, &b->text, &e) < 0) {
		fprintf(stderr, "bind_bench: %s\n", e.msg);
		return false;
	}
	rest = b->text.p;
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		struct request r = { .method = strsep(&line, " "), .url = strsep(&line, " "), .body = line };

		if (r.body == NULL || !HM_PUSH(b->requests, b->count, b->cap, r)) {
			fprintf(stderr, "bind_bench: %s: a line is METHOD URL BODY\n", path);
			return false;
		}
	}
	return true;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct request *r = arg;

	str_add_n(&r->answer, bytes, size * n);
	return str_failed(&r->answer) ? 0 : size * n;
}

/* tls: CA, certificate and key, or NULL. */
static bool open_lanes(struct bench *b, size_t count, char **tls)
{
	b->multi = curl_multi_init();
	b->headers = curl_slist_append(curl_slist_append(NULL, "Content-Type: application/json"), "Expect:");
	curl_multi_setopt(b->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)count);
	curl_multi_setopt(b->multi, CURLMOPT_MAXCONNECTS, (long)count);
	for (size_t i = 0; i < count; i++) {
		CURL *c = curl_easy_init();

		if (b->multi == NULL || b->headers == NULL || c == NULL)
			return false;
		b->idle[b->idle_count++] = c;
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
		curl_easy_setopt(c, CURLOPT_PIPEWAIT, 1L);
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, b->headers);
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
		if (tls != NULL && (curl_easy_setopt(c, CURLOPT_CAINFO, tls[0]) != CURLE_OK ||
				    curl_easy_setopt(c, CURLOPT_SSLCERT, tls[1]) != CURLE_OK ||
				    curl_easy_setopt(c, CURLOPT_SSLKEY, tls[2]) != CURLE_OK))
			return false;
	}
	return true;
}

static void send_next(struct bench *b)
{
	while (b->idle_count > 0 && b->next < b->count) {
		struct request *r = &b->requests[b->next++];
		CURL *c = b->idle[--b->idle_count];

		curl_easy_setopt(c, CURLOPT_PRIVATE, r);
		curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
		curl_easy_setopt(c, CURLOPT_URL, r->url);
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body);
		curl_multi_add_handle(b->multi, c);
		b->in_flight++;
	}
}

static void take_ended(struct bench *b)
{
	int left;

	for (CURLMsg *m; (m = curl_multi_info_read(b->multi, &left)) != NULL;) {
		CURL *c = m->easy_handle;
		struct request *r;

		if (m->data.result != CURLE_OK)
			fprintf(stderr, "bind_bench: %s\n", curl_easy_strerror(m->data.result));
		curl_easy_getinfo(c, CURLINFO_PRIVATE, (char **)&r);
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &r->status);
		b->good += m->data.result == CURLE_OK && r->status / 100 == 2;
		curl_multi_remove_handle(b->multi, c);
		b->idle[b->idle_count++] = c;
		b->in_flight--;
	}
}

static bool run(struct bench *b)
{
	int running;

	for (send_next(b); b->in_flight > 0; send_next(b)) {
		if (curl_multi_perform(b->multi, &running) != CURLM_OK)
			return false;
		take_ended(b);
		if (b->idle_count > 0 && b->next < b->count)
			continue;
		if (b->in_flight > 0 && curl_multi_poll(b->multi, NULL, 0, WAIT_MS, NULL) != CURLM_OK)
			return false;
	}
	return true;
}

static bool write_answers(const struct bench *b, const char *path)
{
	FILE *f = fopen(path, "w");

	if (f == NULL)
		return false;
	for (size_t i = 0; i < b->count; i++) {
		const struct str *text = &b->requests[i].answer;
		const char *end = memchr(str_text(text), '\n', text->n);

		fprintf(f, "%ld %.*s\n", b->requests[i].status, (int)(end != NULL ? (size_t)(end - text->p) : text->n),
			str_text(text));
	}
	return fclose(f) == 0;
}

static void close_all(struct bench *b)
{
	while (b->idle_count > 0)
		curl_easy_cleanup(b->idle[--b->idle_count]);
	curl_multi_cleanup(b->multi);
	curl_slist_free_all(b->headers);
	for (size_t i = 0; i < b->count; i++)
		str_fini(&b->requests[i].answer);
	free(b->requests);
	str_fini(&b->text);
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	uint64_t lanes;
	double before;
	bool good;

	if ((argc != 4 && argc != 7) || !num_u64_str(argv[1], MOST_IN_FLIGHT, &lanes) || lanes == 0) {
		fprintf(stderr, "usage: bind_bench IN_FLIGHT REQUESTS ANSWERS [CA CERTIFICATE KEY]\n");
		return 2;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	good = read_requests(&b, argv[2]) && open_lanes(&b, lanes, argc == 7 ? argv + 4 : NULL);
	before = now_s();
	good = good && run(&b);
	if (good)
		printf("{\"seconds\": %.6f, \"good\": %zu}\n", now_s() - before, b.good);
	good = good && write_answers(&b, argv[3]);
	close_all(&b);
	curl_global_cleanup();
	return good ? 0 : 1;
}
