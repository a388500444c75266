#include "hami/score_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/cursor.h"
#include "hami/go_json.h"
#include "io/json.h"

enum { NONE = -1 };

void node_score_fini(struct node_score *s)
{
	free(s->rows);
	free(s->peers);
	*s = (struct node_score) { 0 };
}

/* Index of the least UUID above `above` (NULL: of all) that isn't self's; NONE at the end. */
static ptrdiff_t next_peer(const char *const uuids[], size_t count, size_t self, const char *above)
{
	ptrdiff_t best = NONE;

	for (size_t i = 0; i < count; i++) {
		if (i == self || (above != NULL && strcmp(uuids[i], above) <= 0))
			continue;
		if (best == NONE || strcmp(uuids[i], uuids[best]) < 0)
			best = (ptrdiff_t)i;
	}
	return best;
}

static void write_row(const char *const uuids[], const int32_t *row, size_t count, size_t self, struct str *out)
{
	ptrdiff_t peer = next_peer(uuids, count, self, NULL);

	str_add(out, "{\"uuid\":");
	go_json_text(out, uuids[self]);
	str_add(out, ",\"score\":{");
	for (bool first = true; peer != NONE; first = false) {
		if (!first)
			str_addc(out, ',');
		go_json_text(out, uuids[peer]);
		str_addf(out, ":%d", row[peer]);
		peer = next_peer(uuids, count, self, uuids[peer]);
	}
	str_add(out, "}}");
}

void score_text_write(const char *const uuids[], const int32_t *scores, size_t count, struct str *out)
{
	str_addc(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			str_addc(out, ',');
		write_row(uuids, scores + i * count, count, i, out);
	}
	str_addc(out, ']');
}

static int read_peers(const struct json_at *row, struct node_score *s, struct score_row *out, struct hm_err *e)
{
	struct json_at peers;
	int r = json_object(row, "score", JSON_OPTIONAL, &peers, e);

	out->first = s->peer_count;
	if (r < 0 || peers.node == NULL)
		return r;
	for (const cJSON *p = peers.node->child; r == 0 && p != NULL; p = p->next) {
		struct json_at at = { .node = p, .parent = &peers, .key = p->string };
		struct score_peer peer = { 0 };
		uint64_t score = 0;

		if (!piece_copy((struct piece) { p->string, strlen(p->string) }, peer.uuid, sizeof peer.uuid))
			return json_err(&peers, NULL, e, "a UUID of more than %zu bytes", sizeof peer.uuid - 1);
		r = json_u64(&at, NULL, JSON_OPTIONAL, 0, INT32_MAX, &score, e);
		peer.score = (int32_t)score;
		if (r == 0 && !HM_PUSH(s->peers, s->peer_count, s->peer_cap, peer))
			r = hm_err_set(e, HM_ENOMEM, "score text");
	}
	out->count = s->peer_count - out->first;
	return r;
}

int score_text_parse(const char *text, struct node_score *out, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct json_at root, list;
	size_t n = strnlen(text, SCORE_TEXT_MAX_BYTES + 1);
	int r;

	*out = (struct node_score) { 0 };
	if (n > SCORE_TEXT_MAX_BYTES)
		return hm_err_set(e, HM_ELIMIT, "a score text of more than %d bytes", SCORE_TEXT_MAX_BYTES);
	r = json_parse(text, n, &tree, e);
	if (r < 0)
		return r;
	root = json_root(tree);
	r = json_array(&root, NULL, JSON_REQUIRED, &list, e);
	if (r == 0 && json_count(&list) > SCORE_TEXT_MAX_GPUS)
		r = hm_err_set(e, HM_ELIMIT, "more than %d GPUs", SCORE_TEXT_MAX_GPUS);
	for (size_t i = 0; r == 0 && i < json_count(&list); i++) {
		struct json_at item = json_item(&list, i);
		struct score_row row = { 0 };

		r = json_copy(&item, "uuid", JSON_OPTIONAL, row.uuid, sizeof row.uuid, e);
		if (r == 0)
			r = read_peers(&item, out, &row, e);
		if (r == 0 && !HM_PUSH(out->rows, out->row_count, out->row_cap, row))
			r = hm_err_set(e, HM_ENOMEM, "score text");
	}
	if (r < 0)
		node_score_fini(out);
	return r;
}

int32_t node_score_of(const struct node_score *s, const char *a, const char *b)
{
	for (size_t i = 0; i < s->row_count; i++) {
		const struct score_row *row = &s->rows[i];

		if (strcmp(row->uuid, a) != 0)
			continue;
		for (size_t k = row->first; k < row->first + row->count; k++) {
			if (strcmp(s->peers[k].uuid, b) == 0)
				return s->peers[k].score;
		}
	}
	return 0;
}
