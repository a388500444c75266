/* One libcurl multi handle, with its connections, inside the loop. */
#ifndef HM_KUBE_POOL_H
#define HM_KUBE_POOL_H

#include <curl/curl.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct kube_pool;

struct kube_pool_events {
	void (*ended)(CURL *easy, CURLcode code); /* still in the pool: remove it, then or later */
	void (*acted)(void *arg); /* libcurl has done something and is left: the one that may free the pool */
	void *arg;
};

int kube_pool_new(struct loop *l, unsigned max_connections, const struct kube_pool_events *events,
		  struct kube_pool **out, struct hm_err *e) HM_MUST_USE;
void kube_pool_free(struct kube_pool *p); /* closes the connections; must be empty, and not inside `ended` */
HM_DEFINE_AUTO(kube_pool, kube_pool_free);

/* Neither calls back. */
int kube_pool_add(struct kube_pool *p, CURL *easy, struct hm_err *e) HM_MUST_USE;
void kube_pool_remove(struct kube_pool *p, CURL *easy);
unsigned kube_pool_count(const struct kube_pool *p); /* transfers in it */

#endif
