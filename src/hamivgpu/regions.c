#include "hamivgpu/view.h"

#include <stdlib.h>
#include <string.h>

#include "contract/host.h"
#include "core/fmt.h"
#include "region/region.h"

/* Where the region keeps a share's card; -1: it does not. */
static int region_card_of(const struct region_snapshot *snap, const char *uuid)
{
	for (size_t i = 0; i < snap->card_count; i++) {
		if (strcmp(snap->cards[i].uuid, uuid) == 0)
			return (int)i;
	}
	return -1;
}

static void fill_shares(struct view_claim *claim, const struct region_snapshot *snap)
{
	for (size_t i = 0; i < claim->c.share_count; i++) {
		struct hamivgpu_share *share = &claim->shares[i];
		int at = region_card_of(snap, share->uuid);

		if (at < 0)
			continue;
		share->memory_used = snap->cards[at].used_bytes;
		share->memory_peak = snap->cards[at].peak_bytes;
		share->refused = snap->cards[at].refused;
		share->spilled = snap->cards[at].spilled;
		share->spilled_bytes = snap->cards[at].spilled_bytes;
	}
}

static int fill_members(struct view_claim *claim, const struct region_snapshot *snap, struct hm_err *e)
{
	size_t count = snap->process_count;

	claim->members = calloc(count + 1, sizeof *claim->members);
	claim->shown = calloc(count + 1, sizeof *claim->shown);
	if (claim->members == NULL || claim->shown == NULL)
		return hm_err_set(e, HM_ENOMEM, "members");
	for (size_t i = 0; i < count; i++) {
		const struct region_process *from = &snap->processes[i];
		struct hamivgpu_member *to = &claim->members[i];

		to->pid = from->pid;
		to->start_time = from->start_time;
		to->pid_namespace = from->pid_namespace;
		for (size_t j = 0; j < claim->c.share_count; j++) {
			int at = region_card_of(snap, claim->shares[j].uuid);

			to->memory_used[j] = at < 0 ? 0 : from->used_bytes[at];
		}
	}
	claim->c.members = claim->members;
	claim->c.member_count = count;
	return 0;
}

static int read_region(struct view *v, struct view_claim *claim, const char *state_dir, struct region_snapshot *snap,
		       struct hm_err *e)
{
	char path[4096];
	struct hm_err why;

	hm_fmt(path, sizeof path, "%s/%s/%llu/%s", state_dir, HM_STATE_ALLOC, (unsigned long long)claim->c.number,
	       HM_ALLOC_REGION);
	if (region_snapshot(path, snap, &why) < 0) {
		view_error(&claim->c.usage, &why);
		/* Claims are for everybody to read, usage is root's: one who may not is told so once. */
		if (why.code == HM_EPERM && v->agent.code == HAMIVGPU_OK)
			view_error(&v->agent, &why);
		return 0;
	}
	fill_shares(claim, snap);
	claim->c.troubles = snap->troubles;
	hm_fmt(claim->c.last_trouble, sizeof claim->c.last_trouble, "%s", snap->last_trouble);
	return fill_members(claim, snap, e);
}

int view_read_regions(struct view *v, const char *state_dir, struct hm_err *e)
{
	hm_auto_heap struct region_snapshot *snap = calloc(1, sizeof *snap);
	hm_auto_heap struct region_process *processes = calloc(REGION_MAX_PROCESSES, sizeof *processes);

	if (snap == NULL || processes == NULL)
		return hm_err_set(e, HM_ENOMEM, "regions");
	snap->processes = processes;
	for (size_t i = 0; i < v->claim_count; i++) {
		int r = read_region(v, &v->claims[i], state_dir, snap, e);

		if (r < 0)
			return r;
	}
	return 0;
}
