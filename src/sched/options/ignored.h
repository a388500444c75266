/* Flags that HAMi's scheduler takes and that have no effect here: its logging library's, and those of other vendors'
 * cards. */
#ifndef HM_SCHED_OPTIONS_IGNORED_H
#define HM_SCHED_OPTIONS_IGNORED_H

#include "base/str.h"

/* Copies the words of argv but those flags and their values into `out` (room for argc + 1; ends with NULL). Returns how
 * many were kept. *ignored gets the flags left out, with ", " between. */
int ignored_flags_drop(int argc, char **argv, char **out, struct str *ignored);

#endif
