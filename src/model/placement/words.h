/* The comma lists of annotations, as HAMi reads them: blanks around a word don't count, nor do empty words. */
#ifndef HM_MODEL_PLACEMENT_WORDS_H
#define HM_MODEL_PLACEMENT_WORDS_H

#include <stdbool.h>

#include "core/cursor.h"

/* The next word of *list, which is moved on; n is 0 for an empty one. False at the end. */
bool words_next(struct cur *list, struct piece *word);

/* Is `word` in the list? NULL is an empty list. */
bool words_have(const char *list, const char *word);

/* Without blanks at both ends. */
struct piece piece_trim(struct piece s);

/* Does the text contain a word of the list, in any case? */
bool words_any_in(const char *list, const char *text);

/* What Go takes for true: 1, t, T, TRUE, true, True. NULL is not. */
bool text_is_true(const char *text);

#endif
