/* Register(v1beta1) with the kubelet: asynchronous, since the kubelet calls back before it answers. */
#ifndef HM_KUBELET_REGISTRATION_H
#define HM_KUBELET_REGISTRATION_H

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct registration;

struct registration_request {
	const char *kubelet_socket; /* path */
	const char *endpoint;       /* our socket's name in the kubelet's folder */
	const char *resource;       /* "hami.com/vgpu" */
	/* Once: e is NULL when the kubelet accepted. -HM_EAGAIN: refused dial, try again in 5 ms; others carry the
	 * kubelet's text. The registration may be freed inside. */
	void (*done)(void *arg, const struct hm_err *e);
	void *arg;
};

/* Starts; the strings are copied. Deadline 15 s. A dial that fails at once is told by `done` from the loop, not from
 * here. */
int registration_start(struct loop *l, const struct registration_request *req, struct registration **out,
		       struct hm_err *e) HM_MUST_USE;
/* Gives up silently if not done. */
void registration_free(struct registration *r);
HM_DEFINE_AUTO(registration, registration_free);

#endif
