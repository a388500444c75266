/* What this build calls itself: for the sub-command `version`, the page /version and the metric hami_build_info. */
#ifndef HM_SCHED_OPTIONS_VERSION_H
#define HM_SCHED_OPTIONS_VERSION_H

#include "base/str.h"

enum version_part {
	VERSION_VERSION,
	VERSION_REVISION,
	VERSION_BUILD_DATE,
	VERSION_GO, /* HAMi's programs name Go's version; ours name none */
	VERSION_COMPILER,
	VERSION_PLATFORM,
	VERSION_PARTS
};
const char *version_of(enum version_part part);

/* As HAMi's scheduler prints it: "version: ...", "revision: ...", one a line. */
void version_add_lines(struct str *out);
/* {"version":"0.1.0",...} */
void version_add_json(struct str *out);

#endif
