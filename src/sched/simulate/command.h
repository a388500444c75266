/* What the sub-commands have in common: files, placement under a policy, numbers in a table. */
#ifndef HM_SCHED_SIMULATE_COMMAND_H
#define HM_SCHED_SIMULATE_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "base/str.h"
#include "core/err.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"
#include "sched/simulate/snapshot.h"

/* Parses, works, says what went wrong. `settings` is what the table's options fill. Returns an exit code. */
int command_run(const char *name, const char *usage, const struct option_spec *table, size_t count, int argc,
		char **argv, int (*work)(void *settings, struct hm_err *e), void *settings);

/* The file of --<option>; NULL is -HM_EINVAL. */
int command_read_file(const char *option, const char *path, struct str *out, struct hm_err *e) HM_MUST_USE;

/* "  95.23" in a column `width` wide: part of whole, in percent. */
void command_add_percent(struct str *out, int64_t part, int64_t whole, int width);

/* To stderr, each behind the command's name. */
void command_print_notes(const char *name, const struct snapshot *s);

/* A placer with the policy fgd. */
struct policy {
	struct pod_mix mix;
	struct fgd *fgd;
	struct placer *placer;
};
void policy_fini(struct policy *p);
#define hm_auto_policy __attribute__((cleanup(policy_fini))) struct policy

/* After the mix was filled; *p must not move from now on. Texts are borrowed. */
int policy_start(struct policy *p, const char *node_policy, const char *card_policy, const struct fgd_weights *weights,
		 struct hm_err *e) HM_MUST_USE;

#endif
