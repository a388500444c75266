/* Whatever is taken answers each pair that it has. */
#include "fuzz/fuzz.h"

#include "core/check.h"
#include "hami/score_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_node_score score = { 0 };
	hm_auto_str text = { 0 };
	struct hm_err e;

	str_add_n(&text, data, n);
	if (score_text_parse(str_text(&text), &score, &e) < 0)
		return 0;
	for (size_t i = 0; i < score.row_count && i < 8; i++) {
		const struct score_row *row = &score.rows[i];

		CHECK(row->first + row->count <= score.peer_count);
		for (size_t k = 0; k < row->count && k < 8; k++)
			CHECK(node_score_of(&score, row->uuid, score.peers[row->first + k].uuid) >= 0);
	}
	return 0;
}
