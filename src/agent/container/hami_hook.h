/* What mode hami keeps on the node's disk beside our own state, for HAMi's tools and for classic binding: its folder
 * <HOOK_PATH>/vgpu (the library by HAMi's name, the ld.so.preload that names it, the monitor's folder of containers),
 * where that is there, and the CDI specs of its plugin, where a CDI strategy asks for them. And what of it containers
 * are given. */
#ifndef HM_AGENT_CONTAINER_HAMI_HOOK_H
#define HM_AGENT_CONTAINER_HAMI_HOOK_H

#include <stdbool.h>

#include "agent/container/driver_edits.h"
#include "agent/container/hami_answer.h"
#include "agent/options/options.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/inventory.h"

struct hami_hook;

/* Options and library (the installed libvgpu.so) are borrowed. The library and ld.so.preload are replaced by rename,
 * where their content is another: containers that run keep theirs. Trouble with them is logged; nothing of ours needs
 * them. */
int hami_hook_new(const struct agent_options *o, const char *library, struct hami_hook **out,
		  struct hm_err *e) HM_MUST_USE;
void hami_hook_free(struct hami_hook *f);
HM_DEFINE_AUTO(hami_hook, hami_hook_free);

/* The options may have changed. */
void hami_hook_configure(struct hami_hook *f);
const struct hami_answer_config *hami_hook_answer(const struct hami_hook *f); /* good until hami_hook_free */
/* Where HAMi's monitor looks for containers: what was asked for, else below HOOK_PATH; NULL: nowhere. */
const char *hami_hook_monitor_dir(const struct hami_hook *f);

/* Brings the CDI specs up to date; cheap where nothing changed. Trouble is logged once, and tried again the next time.
 */
void hami_hook_take(struct hami_hook *f, struct driver_edits *driver, const struct inventory *cards);

#endif
