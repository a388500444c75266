/* hami-simctl's commands. Each takes its operands, returns 0 or a negative code with the message in *e. */
#ifndef HM_SIMCTL_H
#define HM_SIMCTL_H

#include <stdbool.h>

#include "core/err.h"
#include "sim/lib/sim_admin.h"

struct simctl {
	const char *dir;     /* absolute; HAMI_SIM_DIR of the environment is set to it */
	const char *lib_dir; /* where the simulated driver libraries are */
	const char *clock;   /* "wall" or "virtual" */
	bool json;
	uint64_t down_ms; /* driver-reload */
	char **words;     /* the command's operands */
	int word_count;
};

int simctl_up(struct simctl *c, struct hm_err *e) HM_MUST_USE;
int simctl_down(struct simctl *c, struct hm_err *e) HM_MUST_USE;
int simctl_status(struct simctl *c, struct hm_err *e) HM_MUST_USE;
int simctl_gpu(struct simctl *c, struct hm_err *e) HM_MUST_USE;
int simctl_reload(struct simctl *c, struct hm_err *e) HM_MUST_USE;

/* up's parts: the nodes below dir/dev, the CDI spec dir/cdi/nvidia.json. */
int simctl_make_nodes(const char *dir, const struct sim_node *node, struct hm_err *e) HM_MUST_USE;
int simctl_make_node(const char *dir, const char *name, struct hm_err *e) HM_MUST_USE; /* dir/dev/name */
/* dev/nvidia-caps, and which instance each is for: proc/driver/nvidia-caps/mig-minors. */
int simctl_make_caps(const char *dir, const struct sim_node *node, struct hm_err *e) HM_MUST_USE;
int simctl_write_cdi(const char *dir, const char *lib_dir, const struct sim_node *node, struct hm_err *e) HM_MUST_USE;

/* gpu N mig ...; the card exists. */
int simctl_mig(const struct simctl *c, const struct sim_node *node, unsigned number, struct hm_err *e) HM_MUST_USE;

/* What status -j prints, to be freed; NULL where memory is short. */
char *simctl_status_json(const char *dir, const struct sim_node *n);

/* One request of the daemon in c->dir; the error says what it answered, or that none is there. */
int simctl_ask(const struct simctl *c, struct sim_request q, struct sim_reply *reply, struct hm_err *e) HM_MUST_USE;
/* The node; -HM_ENOTFOUND where none is up. */
int simctl_attach(const struct simctl *c, const struct sim_node **node, struct hm_err *e) HM_MUST_USE;

#endif
