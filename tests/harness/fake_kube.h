/* For tests of what is asked of the API server: the client and the reflector, replaced by what the test says.
 * CMakeLists.txt wraps these functions for the tests that include this. */
#ifndef HM_TESTS_HARNESS_FAKE_KUBE_H
#define HM_TESTS_HARNESS_FAKE_KUBE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/json_of.h"
#include "harness/unit.h"
#include "io/loop.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/reflector.h"

static struct loop *fake_loop;

/* The last requests, oldest first; `call` is also the handle. */
struct fake_request {
	enum kube_verb verb;
	char path[256], content_type[64], *body; /* body: NULL or a copy */
	struct kube_events_of_call events;
	uint32_t timeout_ms;
	bool once, open;
};
static struct fake_request fake_requests[160];
static size_t fake_count;
static struct kube_reflector_events fake_reflector; /* the last made, and what fake_watch tells */
static char fake_reflector_path[128], fake_reflector_selector[128];
static struct {
	char path[128];
	struct kube_reflector_events events;
} fake_reflectors[8];
static size_t fake_reflector_count;
static struct kube_reflector_state fake_state; /* of every reflector, but for `listing` */
static bool fake_lists;                        /* the reflectors say that a list is under way */
static bool fake_refuses;                      /* kube_client_call errs */
static int fake_refusal = HM_ENOMEM;
static uint32_t fake_retry_after_ms; /* of the answers that follow */

int __wrap_kube_client_call(struct kube_client *c, const struct kube_request *request,
			    const struct kube_events_of_call *events, struct kube_call **out, struct hm_err *e);
void __wrap_kube_call_cancel(struct kube_call *k);
int __wrap_kube_reflector_new(struct kube_client *c, const struct kube_reflector_options *options,
			      const struct kube_reflector_events *events, struct kube_reflector **out,
			      struct hm_err *e);
void __wrap_kube_reflector_free(struct kube_reflector *r);
void __wrap_kube_reflector_state(const struct kube_reflector *r, struct kube_reflector_state *out);
struct loop *__wrap_kube_client_loop(const struct kube_client *c);

int __wrap_kube_client_call(struct kube_client *c, const struct kube_request *request,
			    const struct kube_events_of_call *events, struct kube_call **out, struct hm_err *e)
{
	struct fake_request *r = &fake_requests[fake_count];

	(void)c;
	if (fake_refuses)
		return hm_err_set(e, fake_refusal, "refused by the test");
	assert_true(fake_count < HM_COUNT(fake_requests));
	fake_count++;
	*r = (struct fake_request) {
		.verb = request->verb,
		.events = *events,
		.timeout_ms = request->timeout_ms,
		.once = request->once,
		.open = true,
	};
	snprintf(r->path, sizeof r->path, "%s", request->path);
	snprintf(r->content_type, sizeof r->content_type, "%s",
		 request->content_type != NULL ? request->content_type : "");
	r->body = request->body != NULL ? strndup(request->body, request->n) : NULL;
	if (out != NULL)
		*out = (struct kube_call *)r;
	return 0;
}

void __wrap_kube_call_cancel(struct kube_call *k)
{
	if (k != NULL)
		((struct fake_request *)k)->open = false;
}

int __wrap_kube_reflector_new(struct kube_client *c, const struct kube_reflector_options *options,
			      const struct kube_reflector_events *events, struct kube_reflector **out, struct hm_err *e)
{
	(void)c;
	(void)e;
	fake_reflector = *events;
	snprintf(fake_reflector_path, sizeof fake_reflector_path, "%s", options->path);
	snprintf(fake_reflector_selector, sizeof fake_reflector_selector, "%s",
		 options->field_selector != NULL ? options->field_selector : "");
	snprintf(fake_reflectors[fake_reflector_count % 8].path, sizeof fake_reflectors[0].path, "%s", options->path);
	fake_reflectors[fake_reflector_count++ % 8].events = *events;
	*out = NULL;
	return 0;
}

void __wrap_kube_reflector_free(struct kube_reflector *r)
{
	(void)r;
}

void __wrap_kube_reflector_state(const struct kube_reflector *r, struct kube_reflector_state *out)
{
	(void)r;
	*out = fake_state;
	out->listing = fake_lists;
}

struct loop *__wrap_kube_client_loop(const struct kube_client *c)
{
	(void)c;
	return fake_loop;
}

/* ---- what the test says */

static inline void fake_forget(void)
{
	for (size_t i = 0; i < fake_count; i++)
		free(fake_requests[i].body);
	memset(fake_requests, 0, sizeof fake_requests);
	fake_count = 0;
	fake_state = (struct kube_reflector_state) { 0 };
	fake_lists = fake_refuses = false;
	fake_refusal = HM_ENOMEM;
	fake_retry_after_ms = 0;
}

/* cmocka's, of a test or a group: the loop. */
static inline int fake_setup(void **state)
{
	(void)state;
	return loop_new(&fake_loop, NULL);
}

static inline int fake_teardown(void **state)
{
	(void)state;
	fake_forget();
	loop_free(fake_loop);
	return 0;
}

/* The newest request that is open; fails the test where there is none. */
static inline struct fake_request *fake_open(void)
{
	for (size_t i = fake_count; i > 0; i--)
		if (fake_requests[i - 1].open)
			return &fake_requests[i - 1];
	fail_msg("no request is open");
	return NULL;
}

static inline void fake_answer(enum kube_outcome outcome, int http, const char *body)
{
	struct fake_request *r = fake_open();
	struct kube_answer a = { .status = { .outcome = outcome, .http = http },
				 .body = body,
				 .n = strlen(body),
				 .retry_after_ms = fake_retry_after_ms };

	if (outcome != KUBE_DONE)
		hm_err_set(&a.err, HM_EAGAIN, "%d as the test says", http);
	r->open = false;
	r->events.done(r->events.arg, &a);
}

/* From now on fake_watch is of this collection. */
static inline void fake_watch_of(const char *path)
{
	for (size_t i = fake_reflector_count; i > 0; i--)
		if (strcmp(fake_reflectors[(i - 1) % 8].path, path) == 0) {
			fake_reflector = fake_reflectors[(i - 1) % 8].events;
			return;
		}
	fail_msg("nobody watches %s", path);
}

/* The watch tells the object of this text (as ' for " so that it can be read here), or that it is gone. */
static inline void fake_watch(const char *text, bool gone)
{
	hm_auto(cJSON) *tree = json_of(text);
	struct kube_object o;
	struct hm_err e;

	assert_int_equal(kube_object_read(tree, &o, &e), 0);
	if (gone)
		fake_reflector.deleted(fake_reflector.arg, &o);
	else
		fake_reflector.changed(fake_reflector.arg, &o);
}

#endif
