/* Libraries of former releases in the state folder: those that no container has or may still need are removed. */
#ifndef HM_AGENT_CONTAINER_LIBRARY_CLEAN_H
#define HM_AGENT_CONTAINER_LIBRARY_CLEAN_H

#include "agent/claims/claims.h"
#include "agent/options/paths.h"

/* Once, at start. `current` is the installed library. What cannot be seen is kept, with a word in the log. */
void library_clean(const struct agent_paths *paths, const char *current, const struct claims *claims);

#endif
