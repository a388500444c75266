/* HTTP transfers by libcurl's multi interface, inside the one loop. Knows TLS, connections and time limits, and nothing
 * of Kubernetes' answers. HTTP/2 where TLS agrees on it, else 1.1; connections are kept.
 *
 * Callbacks come from the loop only, never from inside a call of this module, and outside of libcurl: they may start
 * and cancel transfers and free the transport. A host that is a name and no address is looked up by libcurl in a
 * short-lived thread of its own; in-cluster it is an address.
 *
 * The program ignores SIGPIPE: OpenSSL writes to connections that are closed. */
#ifndef HM_KUBE_TRANSPORT_H
#define HM_KUBE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kube/config.h"

struct kube_transport;
struct kube_transfer;

struct kube_transport_options {
	uint32_t connect_ms;      /* name, TCP and TLS */
	unsigned max_connections; /* more transfers wait for one */
	const char *user_agent;   /* copied */
};

/* The config is borrowed. -HM_EUNSUPPORTED where libcurl lacks what we need. */
int kube_transport_new(struct loop *l, const struct kube_config *config, const struct kube_transport_options *options,
		       struct kube_transport **out, struct hm_err *e) HM_MUST_USE;
/* Transfers end without their callbacks. */
void kube_transport_free(struct kube_transport *t);
HM_DEFINE_AUTO(kube_transport, kube_transport_free);

struct kube_transfer_request {
	const char *method;       /* "GET" */
	const char *path;         /* behind the server's URL, encoded: "/api/v1/nodes?limit=5" */
	const char *bearer;       /* token; NULL: none */
	const char *content_type; /* of the body; NULL: no body */
	const char *body;
	size_t n;
	bool once;         /* the body leaves once, even where a kept connection breaks */
	bool stream;       /* a 2xx answer is handed over as it comes, unbounded; otherwise it is collected */
	size_t max_bytes;  /* of a collected answer, decoded */
	uint32_t head_ms;  /* until the answer's headers are there; counts from the start */
	uint32_t stall_ms; /* between two reads from then on; 0: no limit */
	uint32_t total_ms; /* of all; 0: no limit */
};

struct kube_transfer_result {
	int http;         /* 0: no whole answer; `err` says why */
	const char *body; /* collected; NUL-terminated; good until the callback returns */
	size_t n;
	uint32_t retry_after_s; /* the header, 0: none */
	bool http2;
	uint64_t head_ms;         /* from the start to the headers; where none came, to the end */
	const struct hm_err *err; /* code 0 where http counts: HM_ETIMEDOUT, HM_ELIMIT, HM_EIO, HM_EPERM for TLS */
};

struct kube_transfer_events {
	void (*data)(void *arg, const char *bytes, size_t n);               /* of a stream with status 2xx */
	void (*done)(void *arg, const struct kube_transfer_result *result); /* once */
	void *arg;
};

/* All is copied. *out is good until done was called. On failure no callback comes. */
int kube_transfer_start(struct kube_transport *t, const struct kube_transfer_request *request,
			const struct kube_transfer_events *events, struct kube_transfer **out,
			struct hm_err *e) HM_MUST_USE;
/* No callback comes any more. NULL does nothing. */
void kube_transfer_cancel(struct kube_transfer *x);

#endif
