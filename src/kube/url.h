/* Paths of the API with names and queries in them, percent-encoded, so that no name can become a path of its own. */
#ifndef HM_KUBE_URL_H
#define HM_KUBE_URL_H

#include "base/str.h"

/* The text with all but RFC 3986's unreserved characters encoded; "." and ".." too, which curl would resolve. */
void kube_url_add(struct str *out, const char *text);

/* "?key=value" where `out` has no query yet, else "&key=value". */
void kube_url_add_query(struct str *out, const char *key, const char *value);

/* "/api/v1/nodes/NAME", "/api/v1/namespaces/NS/pods/NAME", "/api/v1/namespaces/NS/pods" for name NULL and so on:
 * `prefix` ("/api/v1", "/apis/coordination.k8s.io/v1"), namespace NULL: of no namespace. */
void kube_url_add_path(struct str *out, const char *prefix, const char *name_space, const char *plural,
		       const char *name);

#endif
