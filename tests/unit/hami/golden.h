/* tests/golden/texts.tsv: annotations that HAMi's own scheduler and plugin wrote, a kind and a text in each line. */
#ifndef HM_TESTS_UNIT_HAMI_GOLDEN_H
#define HM_TESTS_UNIT_HAMI_GOLDEN_H

#include <stddef.h>

/* Calls check with each text of this kind ("register", "score", "mig", "devices"); returns how many there are. The file
 * can be another one: environment HM_GOLDEN_TEXTS. */
size_t golden_each(const char *kind, void (*check)(const char *text));

#endif
