/* HAMi's two files, taken over into the options. */
#ifndef HM_AGENT_OPTIONS_HAMI_FILES_H
#define HM_AGENT_OPTIONS_HAMI_FILES_H

#include "agent/options/options.h"
#include "core/err.h"

/* What is known before the files are read. */
struct hami_places {
	const char *device_config; /* NULL or "": none, everything has its default */
	const char *node_config;
	const char *node_name; /* NULL: no entry of node_config is ours */
};

/* Sets o's options, by the table over it. A device-config.yaml that cannot be used is an error. A config.json that
 * cannot be used changes nothing: that HAMi's plugin then runs without an operating mode is its defect 11.10; the
 * reason is in o->hami.node_config_trouble, and in the log once. -HM_ENOMEM. */
int hami_files_read(struct agent_options *o, const struct option_spec table[AGENT_OPTION_COUNT],
		    const struct hami_places *places, struct hm_err *e) HM_MUST_USE;

/* A card that config.json's filterdevices keeps from being offered. */
bool hami_files_leave_out(const struct hami_options *h, const char *uuid, uint64_t index);

#endif
