/* One libcurl easy handle, set up for a request to the API server: the one place that knows libcurl's options. */
#ifndef HM_KUBE_EASY_H
#define HM_KUBE_EASY_H

#include <curl/curl.h>
#include <stdint.h>

#include "core/err.h"
#include "kube/config.h"
#include "kube/transport.h"

struct kube_easy {
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char text[CURL_ERROR_SIZE];
	char *body; /* of one that leaves once, and how much of it has left */
	size_t n, left;
};

/* libcurl's own kind of callback; arg is what kube_easy_owner answers. */
struct kube_easy_calls {
	size_t (*head)(char *line, size_t size, size_t n, void *arg);
	size_t (*body)(char *bytes, size_t size, size_t n, void *arg);
	void *arg;
};

/* `x` is zeroed and must not move. Freed with kube_easy_fini on failure too. */
int kube_easy_init(struct kube_easy *x, const struct kube_config *config, const char *user_agent, uint32_t connect_ms,
		   const struct kube_transfer_request *request, const struct kube_easy_calls *calls,
		   struct hm_err *e) HM_MUST_USE;
void kube_easy_fini(struct kube_easy *x); /* out of its multi handle by now */

void *kube_easy_owner(CURL *curl);
int kube_easy_http(CURL *curl, uint32_t *retry_after_s); /* 0: no answer yet; retry_after_s may be NULL */
bool kube_easy_http2(CURL *curl);                        /* how the answer came */
/* What went wrong; returns -code. */
int kube_easy_err(const struct kube_easy *x, CURLcode code, struct hm_err *e);

#endif
