#include "kube/easy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

enum {
	KEEPALIVE_IDLE_S = 15,
	KEEPALIVE_EVERY_S = 5,
	KEEPALIVE_TRIES = 3,
	UNACKED_MS = 30000, /* a host that vanished is noticed so late at most, whatever is in flight */
	CA_KEPT_S = 60,     /* a renewed CA file is seen so late */
};

static void set_option(curl_socket_t fd, int level, int name, int value)
{
	/* Best effort: without it a dead peer is noticed later, by the limits on the transfer. */
	(void)setsockopt(fd, level, name, &value, sizeof value);
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);

	(void)arg, (void)purpose;
	if (fd < 0)
		return CURL_SOCKET_BAD;
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TRIES);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS);
	return fd;
}

/* libcurl copies text, and hands over blobs by reference: the config outlives every transfer. */
static CURLcode set_pem(CURL *c, const struct kube_pem *pem, CURLoption file, CURLoption blob)
{
	struct curl_blob b = { pem->data, pem->n, CURL_BLOB_NOCOPY };

	if (pem->data != NULL)
		return curl_easy_setopt(c, blob, &b);
	return pem->file != NULL ? curl_easy_setopt(c, file, pem->file) : CURLE_OK;
}

static CURLcode set_tls(CURL *c, const struct kube_config *k)
{
	CURLcode r;

	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(c, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_KEPT_S);
	if (k->insecure) {
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	r = set_pem(c, &k->ca, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
	/* The machine's own CAs sign no API server's certificate once the config names one. */
	if (r == CURLE_OK && (k->ca.file != NULL || k->ca.data != NULL))
		r = curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	if (r == CURLE_OK)
		r = set_pem(c, &k->cert, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
	return r == CURLE_OK ? set_pem(c, &k->key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB) : r;
}

/* The server's URL and the path. A tls-server-name takes the host's place in the URL, and libcurl is told to connect to
 * the host all the same. */
static CURLcode set_url(struct kube_easy *x, const struct kube_config *k, const char *path)
{
	const char *host = strstr(k->server, "://") + 3, *rest = host + strcspn(host, "/");
	const char *port = memrchr(host, ':', (size_t)(rest - host));
	hm_auto_str url = { 0 }, to = { 0 };

	if (port != NULL && memchr(port, ']', (size_t)(rest - port)) != NULL)
		port = NULL; /* a colon of the address */
	if (k->tls_server_name == NULL) {
		str_addf(&url, "%s%s", k->server, path);
	} else {
		str_addf(&url, "%.*s%s%.*s%s%s", (int)(host - k->server), k->server, k->tls_server_name,
			 port != NULL ? (int)(rest - port) : 0, port != NULL ? port : "", rest, path);
		str_addf(&to, "::%.*s%s", (int)(rest - host), host, port != NULL ? "" : ":");
		x->connect_to = str_failed(&to) ? NULL : curl_slist_append(NULL, str_text(&to));
		if (x->connect_to == NULL || curl_easy_setopt(x->curl, CURLOPT_CONNECT_TO, x->connect_to) != CURLE_OK)
			return CURLE_OUT_OF_MEMORY;
	}
	return str_failed(&url) ? CURLE_OUT_OF_MEMORY : curl_easy_setopt(x->curl, CURLOPT_URL, str_text(&url));
}

/* "Name: value"; with an empty value libcurl sends no such header. */
static bool add_header(struct kube_easy *x, const char *name, const char *value)
{
	hm_auto_secret line = { 0 };
	struct curl_slist *list;

	str_addf(&line, value[0] != '\0' ? "%s: %s" : "%s:", name, value);
	list = str_failed(&line) ? NULL : curl_slist_append(x->headers, str_text(&line));
	x->headers = list != NULL ? list : x->headers;
	return list != NULL;
}

static size_t read_once(char *to, size_t size, size_t n, void *arg)
{
	struct kube_easy *x = arg;

	if (x->left == x->n)
		return CURL_READFUNC_ABORT;
	n = HM_MIN(size * n, x->n - x->left);
	memcpy(to, x->body + x->left, n);
	x->left += n;
	return n;
}

/* libcurl sends a request again whose kept connection broke before a byte of an answer: the server may have taken both.
 * A body that it reads from us and cannot wind back it cannot send again. */
static CURLcode set_body(struct kube_easy *x, const struct kube_transfer_request *r)
{
	curl_easy_setopt(x->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->n);
	if (!r->once || r->n == 0)
		return curl_easy_setopt(x->curl, CURLOPT_COPYPOSTFIELDS, r->body);
	x->body = malloc(r->n);
	if (x->body == NULL)
		return CURLE_OUT_OF_MEMORY;
	memcpy(x->body, r->body, r->n);
	x->n = r->n;
	curl_easy_setopt(x->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(x->curl, CURLOPT_READFUNCTION, read_once);
	return curl_easy_setopt(x->curl, CURLOPT_READDATA, x);
}

static CURLcode set_request(struct kube_easy *x, const struct kube_transfer_request *r)
{
	hm_auto_secret auth = { 0 };

	if (r->bearer != NULL && r->bearer[0] != '\0') {
		str_addf(&auth, "Bearer %s", r->bearer);
		if (str_failed(&auth) || !add_header(x, "Authorization", str_text(&auth)))
			return CURLE_OUT_OF_MEMORY;
	}
	if (!add_header(x, "Accept", "application/json"))
		return CURLE_OUT_OF_MEMORY;
	if (strcmp(r->method, "GET") != 0 && curl_easy_setopt(x->curl, CURLOPT_CUSTOMREQUEST, r->method) != CURLE_OK)
		return CURLE_OUT_OF_MEMORY;
	if (r->content_type != NULL) {
		if (!add_header(x, "Content-Type", r->content_type) || !add_header(x, "Expect", ""))
			return CURLE_OUT_OF_MEMORY;
		if (set_body(x, r) != CURLE_OK)
			return CURLE_OUT_OF_MEMORY;
	}
	return curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers);
}

static CURLcode set_all(struct kube_easy *x, const struct kube_config *k, const char *user_agent, uint32_t connect_ms,
			const struct kube_transfer_request *r, const struct kube_easy_calls *calls)
{
	CURL *c = x->curl;
	CURLcode code;

	/* Numbers and pointers cannot fail where the option exists. */
	curl_easy_setopt(c, CURLOPT_PRIVATE, calls->arg);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->text);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 1L);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(c, CURLOPT_PIPEWAIT, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, calls->head);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, calls->arg);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, calls->body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, calls->arg);
	code = curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, strncmp(k->server, "https:", 6) == 0 ? "https" : "http");
	if (code == CURLE_OK)
		code = curl_easy_setopt(c, CURLOPT_USERAGENT, user_agent);
	if (code == CURLE_OK && k->proxy_url != NULL)
		code = curl_easy_setopt(c, CURLOPT_PROXY, k->proxy_url);
	if (code == CURLE_OK)
		code = set_tls(c, k);
	if (code == CURLE_OK)
		code = set_url(x, k, r->path);
	return code == CURLE_OK ? set_request(x, r) : code;
}

int kube_easy_init(struct kube_easy *x, const struct kube_config *config, const char *user_agent, uint32_t connect_ms,
		   const struct kube_transfer_request *request, const struct kube_easy_calls *calls, struct hm_err *e)
{
	CURLcode code;

	x->curl = curl_easy_init();
	if (x->curl == NULL)
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	code = set_all(x, config, user_agent, connect_ms, request, calls);
	return code == CURLE_OK ? 0 : kube_easy_err(x, code, e);
}

void kube_easy_fini(struct kube_easy *x)
{
	if (x->curl != NULL)
		curl_easy_cleanup(x->curl);
	x->curl = NULL;
	free(x->body);
	x->body = NULL;
	for (struct curl_slist *h = x->headers; h != NULL; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(x->headers);
	curl_slist_free_all(x->connect_to);
	x->headers = x->connect_to = NULL;
}

void *kube_easy_owner(CURL *curl)
{
	char *owner = NULL;

	curl_easy_getinfo(curl, CURLINFO_PRIVATE, &owner);
	return owner;
}

int kube_easy_http(CURL *curl, uint32_t *retry_after_s)
{
	curl_off_t wait = 0;
	long http = 0;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http);
	if (retry_after_s != NULL) {
		curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
		*retry_after_s = wait > 0 && wait < 86400 ? (uint32_t)wait : 0;
	}
	return (int)http;
}

bool kube_easy_http2(CURL *curl)
{
	long version = 0;

	curl_easy_getinfo(curl, CURLINFO_HTTP_VERSION, &version);
	return version == CURL_HTTP_VERSION_2_0;
}

int kube_easy_err(const struct kube_easy *x, CURLcode code, struct hm_err *e)
{
	static const struct {
		CURLcode from;
		int to;
	} table[] = {
		{ CURLE_OUT_OF_MEMORY, HM_ENOMEM },           { CURLE_OPERATION_TIMEDOUT, HM_ETIMEDOUT },
		{ CURLE_PEER_FAILED_VERIFICATION, HM_EPERM }, { CURLE_SSL_CERTPROBLEM, HM_EINVAL },
		{ CURLE_SSL_CACERT_BADFILE, HM_EINVAL },      { CURLE_URL_MALFORMAT, HM_EINVAL },
		{ CURLE_NOT_BUILT_IN, HM_EUNSUPPORTED },      { CURLE_UNKNOWN_OPTION, HM_EUNSUPPORTED },
		{ CURLE_WEIRD_SERVER_REPLY, HM_EPROTO },      { CURLE_UNSUPPORTED_PROTOCOL, HM_EPROTO },
		{ CURLE_BAD_CONTENT_ENCODING, HM_EPROTO },
	};
	int to = HM_EIO;

	for (size_t i = 0; i < HM_COUNT(table); i++) {
		if (table[i].from == code)
			to = table[i].to;
	}
	return hm_err_set(e, to, "%s", x->text[0] != '\0' ? x->text : curl_easy_strerror(code));
}
