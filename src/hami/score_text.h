/* hami.io/node-nvidia-score: how close a node's GPUs are to each other, for HAMi's topology-aware policy:
 * [{"uuid":"GPU-a","score":{"GPU-b":150,"GPU-c":20}},...], to the byte as HAMi's plugin writes it. */
#ifndef HM_HAMI_SCORE_TEXT_H
#define HM_HAMI_SCORE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"

enum { SCORE_TEXT_MAX_BYTES = 256 * 1024, SCORE_TEXT_MAX_GPUS = 1024 };

/* Appends the value. scores[a * count + b] is the pair's score from a to b; [a][a] is not looked at. GPUs come in the
 * given order (the register text's), the peers of each sorted by UUID. */
void score_text_write(const char *const uuids[], const int32_t *scores, size_t count, struct str *out);

struct score_peer {
	char uuid[HM_UUID_BYTES];
	int32_t score;
};

struct score_row {
	char uuid[HM_UUID_BYTES];
	size_t first, count; /* peers[first .. first + count) */
};

struct node_score {
	struct score_row *rows; /* owned */
	size_t row_count, row_cap;
	struct score_peer *peers; /* owned */
	size_t peer_count, peer_cap;
};

void node_score_fini(struct node_score *s);
static inline void node_score_auto_fini(struct node_score *s)
{
	node_score_fini(s);
}
/* A local: hm_auto_node_score s = { 0 }; */
#define hm_auto_node_score __attribute__((cleanup(node_score_auto_fini))) struct node_score

/* Unknown members are ignored. -HM_EPROTO, -HM_EINVAL with the place, -HM_ELIMIT, -HM_ENOMEM. *out needs
 * node_score_fini on success. */
int score_text_parse(const char *text, struct node_score *out, struct hm_err *e) HM_MUST_USE;

/* The pair's score as a's row has it; 0 where the text does not know it. */
int32_t node_score_of(const struct node_score *s, const char *a, const char *b);

#endif
