/* One snapshot while it is made and after; for this folder only. Each reader adds what its source knows:
 *     view_read_driver -> cards;  view_read_agent -> slots of cards, claims;  view_read_regions -> usage of claims;
 *     view_read_processes -> processes.
 * They fail only where memory is short; anything else is a state or a problem of the view. */
#ifndef HM_HAMIVGPU_VIEW_H
#define HM_HAMIVGPU_VIEW_H

#include "core/cleanup.h"
#include "core/err.h"
#include "gpu/scan.h"
#include "hamivgpu/hamivgpu.h"

/* A claim and what it owns. */
struct view_claim {
	struct hamivgpu_claim c; /* its shares and members point to these */
	struct hamivgpu_share *shares;
	struct hamivgpu_member *members;
	bool *shown; /* one a member: the driver shows it */
};

struct view {
	struct hamivgpu_error driver, agent;
	struct hamivgpu_node node;
	struct hamivgpu_card *cards;
	size_t card_count, card_cap;
	struct view_claim *claims;
	size_t claim_count, claim_cap;
	struct hamivgpu_process *processes;
	size_t process_count, process_cap;
	char **problems;
	size_t problem_count, problem_cap;
};

struct view *view_new(void); /* NULL where memory is short */
void view_free(struct view *v);
HM_DEFINE_AUTO(view, view_free);

/* A line, escaped; beyond a limit they are only counted in the last one. */
int view_add_problem(struct view *v, const char *text, struct hm_err *e) HM_MUST_USE;

/* -1 where absent. */
int view_find_card(const struct view *v, const char *uuid);

/* The public error of an internal one. */
void view_error(struct hamivgpu_error *to, const struct hm_err *from);

/* *driver is opened where it is NULL, and closed (NULL) where it does not answer. */
int view_read_driver(struct view *v, struct gpu_driver **driver, const char *library, struct hm_err *e) HM_MUST_USE;
int view_read_agent(struct view *v, const char *state_dir, struct hm_err *e) HM_MUST_USE;
int view_read_regions(struct view *v, const char *state_dir, struct hm_err *e) HM_MUST_USE;
/* driver may be NULL. */
int view_read_processes(struct view *v, struct gpu_driver *driver, const char *proc_dir, struct hm_err *e) HM_MUST_USE;

#endif
