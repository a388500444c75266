/* One AdmissionReview (admission.k8s.io/v1 and v1beta1): what is asked, and the answer, which the rules fill in step by
 * step. */
#ifndef HM_SCHED_WEBHOOK_REVIEW_H
#define HM_SCHED_WEBHOOK_REVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "core/macros.h"

struct cJSON;

/* Borrowed from the tree. Texts are "" and objects NULL where absent or null, or where they are of another kind. */
struct review {
	const char *api_version, *kind; /* repeated in the answer */
	const char *uid, *operation, *subresource, *name_space, *user;
	const struct cJSON *object, *old_object; /* of any kind: the pod, binding, ... */
};

void review_read(const struct cJSON *tree, struct review *r);

enum { ANSWER_MESSAGE_BYTES = 512, ANSWER_MAX_WARNINGS = 12 };

struct answer {
	bool allowed;
	unsigned code;      /* HTTP's */
	const char *reason; /* of metav1.Status, or NULL */
	char message[ANSWER_MESSAGE_BYTES];
	struct str patch;    /* owned: operations, comma between; sched/webhook/patch.h */
	struct str warnings; /* owned: JSON texts, comma between */
	size_t warning_count;
};

void answer_init(struct answer *a); /* allowed, 200 */
void answer_fini(struct answer *a);

/* Not allowed, whatever the patch says; false, so that a rule ends with it. */
bool answer_forbid(struct answer *a, const char *fmt, ...) HM_PRINTF(2, 3); /* 403 */
bool answer_fail(struct answer *a, unsigned code, const char *fmt, ...) HM_PRINTF(3, 4);

/* Shown to whoever made the request. The first ANSWER_MAX_WARNINGS count. */
void answer_warn(struct answer *a, const char *fmt, ...) HM_PRINTF(2, 3);

/* The AdmissionReview that answers r. */
void answer_write(const struct answer *a, const struct review *r, struct str *out);

/* A member of an object, NULL where it is absent or null, or o is no object. */
const struct cJSON *review_member(const struct cJSON *o, const char *key);
/* Its text, NULL where it is none. */
const char *review_text(const struct cJSON *o, const char *key);
/* Its items, NULL where it is no list. */
const struct cJSON *review_list(const struct cJSON *o, const char *key);

#endif
