#include "hamivgpu/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "contract/host.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/num.h"
#include "hamivgpu/read_file.h"
#include "model/claim_text.h"
#include "model/node_text.h"

enum { PATH_BYTES = 4096, MAX_CLAIMS = 65536 };

_Static_assert((int)HAMIVGPU_MAX_SHARES == (int)HM_MAX_CARDS, "a claim may touch every card");

/* Slots of a card, which is added where only the agent knows it. */
static int add_node_card(struct view *v, const struct node_card *from, struct hm_err *e)
{
	int at = view_find_card(v, from->uuid);
	struct hamivgpu_card *card;

	if (at < 0) {
		struct hamivgpu_card unseen = { .index = -1,
						.minor = -1,
						.numa_node = -1,
						.busy_percent = -1,
						.memory_total = HAMIVGPU_UNKNOWN,
						.memory_used = HAMIVGPU_UNKNOWN };

		hm_fmt(unseen.uuid, sizeof unseen.uuid, "%s", from->uuid);
		if (!HM_PUSH(v->cards, v->card_count, v->card_cap, unseen))
			return hm_err_set(e, HM_ENOMEM, "cards");
		at = (int)v->card_count - 1;
	}
	card = &v->cards[at];
	card->slots = from->slots;
	card->slot_memory = from->slot_memory_bytes;
	card->slot_cores = from->slot_cores;
	return 0;
}

static int read_node(int dir, const char *state_dir, struct node_text *out, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	char path[PATH_BYTES];
	int r;

	hm_fmt(path, sizeof path, "%s/%s", state_dir, HM_STATE_NODE);
	r = read_file_at(dir, HM_STATE_NODE, path, NODE_TEXT_MAX_BYTES, &text, e);
	if (r < 0)
		return r;
	r = node_text_parse(str_text(&text), text.n, out, e);
	return r < 0 ? hm_err_wrap(e, "%s", path) : 0;
}

static int add_node(struct view *v, const struct node_text *node, struct hm_err *e)
{
	hm_fmt(v->node.slicing, sizeof v->node.slicing, "%s", slicing_name(node->slicing));
	hm_fmt(v->node.binding, sizeof v->node.binding, "%s", node_binding_name(node->binding));
	v->node.slots_per_card = node->slots_per_card;
	v->node.slot_memory_mb = node->slot_memory_mb;
	v->node.agent_pid = node->pid;
	for (size_t i = 0; i < node->card_count; i++) {
		int r = add_node_card(v, &node->cards[i], e);

		if (r < 0)
			return r;
	}
	return 0;
}

/* How many of a claim's device ids are slots of this card. */
static unsigned count_slots(const struct claim *claim, const char *uuid)
{
	size_t n = strlen(uuid), separator = sizeof HM_DEVICE_ID_SEPARATOR - 1;
	unsigned count = 0;

	for (size_t i = 0; i < claim->device_count; i++)
		count += strncmp(claim->devices[i], uuid, n) == 0 &&
			 strncmp(claim->devices[i] + n, HM_DEVICE_ID_SEPARATOR, separator) == 0;
	return count;
}

static void fill_share(struct view *v, const struct claim *claim, const struct claim_card *from,
		       struct hamivgpu_share *to)
{
	*to = (struct hamivgpu_share) {
		.card = view_find_card(v, from->uuid),
		.slots = count_slots(claim, from->uuid),
		.first_slot = from->slot,
		.cores = from->cores,
		.memory = from->memory_bytes,
		.memory_used = HAMIVGPU_UNKNOWN,
		.memory_peak = HAMIVGPU_UNKNOWN,
		.refused = HAMIVGPU_UNKNOWN,
		.spilled = HAMIVGPU_UNKNOWN,
		.spilled_bytes = HAMIVGPU_UNKNOWN,
	};
	hm_fmt(to->uuid, sizeof to->uuid, "%s", from->uuid);
	if (to->card >= 0 && claim->state != CLAIM_ENDED)
		v->cards[to->card].slots_used += to->slots;
}

static int add_claim(struct view *v, const struct claim *from, struct hm_err *e)
{
	struct view_claim to = { .c = { .number = from->number, .created_ms = from->created_ms } };

	to.shares = calloc(from->card_count + 1, sizeof *to.shares);
	if (to.shares == NULL || !HM_PUSH(v->claims, v->claim_count, v->claim_cap, to)) {
		free(to.shares);
		return hm_err_set(e, HM_ENOMEM, "claims");
	}
	hm_fmt(v->claims[v->claim_count - 1].c.state, sizeof to.c.state, "%s", claim_state_name(from->state));
#define COPY(member)                                                                                                   \
	do {                                                                                                           \
		_Static_assert(sizeof to.c.member == sizeof from->member, "cut nothing");                              \
		memcpy(v->claims[v->claim_count - 1].c.member, from->member, sizeof from->member);                     \
	} while (0)
	COPY(pod_uid);
	COPY(pod_namespace);
	COPY(pod_name);
	COPY(container);
	COPY(resource);
	COPY(cdi);
#undef COPY
	for (size_t i = 0; i < from->card_count; i++)
		fill_share(v, from, &from->cards[i], &to.shares[i]);
	v->claims[v->claim_count - 1].c.shares = to.shares;
	v->claims[v->claim_count - 1].c.share_count = from->card_count;
	return 0;
}

/* One file of claims/. A claim that ended while we read is no problem. */
static int read_claim(struct view *v, int dir, const char *name, uint64_t number, const char *claims_path,
		      struct hm_err *e)
{
	hm_auto_str text = { 0 };
	struct claim claim = { 0 };
	char path[PATH_BYTES];
	struct hm_err why;
	int r;

	hm_fmt(path, sizeof path, "%s/%s", claims_path, name);
	r = read_file_at(dir, name, path, CLAIM_MAX_BYTES, &text, &why);
	if (r == -HM_ENOTFOUND)
		return 0;
	if (r == 0) {
		r = claim_parse(str_text(&text), text.n, &claim, &why);
		if (r == 0 && claim.number != number) {
			claim_fini(&claim);
			r = hm_err_set(&why, HM_EPROTO, "says number %llu", (unsigned long long)claim.number);
		}
		if (r < 0)
			hm_err_wrap(&why, "%s", path);
	}
	if (r == -HM_ENOMEM)
		return hm_err_set(e, HM_ENOMEM, "%s", why.msg);
	if (r < 0)
		return view_add_problem(v, why.msg, e);
	r = add_claim(v, &claim, e);
	claim_fini(&claim);
	return r;
}

static int by_number(const void *a, const void *b)
{
	const struct view_claim *x = a, *y = b;

	return (x->c.number > y->c.number) - (x->c.number < y->c.number);
}

static int read_claims(struct view *v, DIR *claims, const char *path, struct hm_err *e)
{
	const struct dirent *entry;

	while ((entry = readdir(claims)) != NULL) {
		uint64_t number;
		int r;

		/* Others are files that are being replaced. "007" would be a second 7. */
		if (!num_u64_str(entry->d_name, UINT64_MAX, &number) ||
		    (entry->d_name[0] == '0' && entry->d_name[1] != '\0'))
			continue;
		if (v->claim_count == MAX_CLAIMS)
			return view_add_problem(v, "more claims than can be", e);
		r = read_claim(v, dirfd(claims), entry->d_name, number, path, e);
		if (r < 0)
			return r;
	}
	if (v->claim_count > 0)
		qsort(v->claims, v->claim_count, sizeof *v->claims, by_number);
	return 0;
}

static int open_claims(struct view *v, int dir, const char *state_dir, struct hm_err *e)
{
	char path[PATH_BYTES];
	int fd = openat(dir, HM_STATE_CLAIMS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *claims = fd < 0 ? NULL : fdopendir(fd);
	struct hm_err why;
	int r;

	hm_fmt(path, sizeof path, "%s/%s", state_dir, HM_STATE_CLAIMS);
	if (claims == NULL) {
		r = hm_err_errno(&why, errno, "open %s", path);
		if (fd >= 0)
			close(fd);
		if (r == -HM_ENOTFOUND) /* none yet */
			return 0;
		if (v->agent.code == HAMIVGPU_OK)
			view_error(&v->agent, &why);
		return 0;
	}
	r = read_claims(v, claims, path, e);
	closedir(claims);
	return r;
}

int view_read_agent(struct view *v, const char *state_dir, struct hm_err *e)
{
	hm_auto_fd dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct node_text node;
	struct hm_err why;
	int r;

	if (strlen(state_dir) > PATH_BYTES / 2) {
		hm_err_set(&why, HM_EINVAL, "the state folder's path is too long");
		view_error(&v->agent, &why);
		return 0;
	}
	if (dir < 0) {
		hm_err_errno(&why, errno, "open %s", state_dir);
		view_error(&v->agent, &why);
		return 0;
	}
	r = read_node(dir, state_dir, &node, &why);
	if (r == -HM_ENOMEM)
		return hm_err_set(e, HM_ENOMEM, "%s", why.msg);
	if (r < 0)
		view_error(&v->agent, &why);
	else if ((r = add_node(v, &node, e)) < 0)
		return r;
	return open_claims(v, dir, state_dir, e);
}
