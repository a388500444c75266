/* What a failed CHECK does in a daemon or a command: says where, then aborts. A core dump beats wandering on. */
#include <stdlib.h>

#include "base/log.h"
#include "core/check.h"

void hm_check_failed(const char *file, int line, const char *what)
{
	log_error("check failed", KV("file", file), KV_I64("line", line), KV("what", what));
	abort();
}
