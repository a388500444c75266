/* Objects of one path and by one selection, and the URLs by which they are listed and watched. */
#ifndef HM_KUBE_COLLECTION_H
#define HM_KUBE_COLLECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct kube_collection {
	char *path, *field_selector, *label_selector; /* owned; a selector that is NULL: all */
};

/* Copies. False where memory is short; kube_collection_fini frees it then, too. */
bool kube_collection_init(struct kube_collection *c, const char *path, const char *field_selector,
			  const char *label_selector);
void kube_collection_fini(struct kube_collection *c);

/* version NULL: from etcd, `limit` objects; else from the API server's cache, all, and nothing older than that ("":
 * whatever it has). token: what the page before said; NULL: the first. */
void kube_collection_add_list(const struct kube_collection *c, const char *version, unsigned limit, const char *token,
			      struct str *url);
/* With bookmarks; the server is asked to end it after so long. */
void kube_collection_add_watch(const struct kube_collection *c, const char *version, uint32_t seconds, struct str *url);

#endif
