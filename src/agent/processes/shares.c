#include "agent/processes/shares.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/processes/pid_owners.h"
#include "agent/processes/share_rules.h"
#include "base/array.h"
#include "base/str.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "gpu/busy.h"
#include "io/file.h"

/* A sample stands for the time since the one before, unless the card was idle in between, or we were late: then drivers
 * may differ in what they tell of it. So an interval counts only if it is about one period of the driver's. */
#define PERIOD_LEAST_US (SHARE_SAMPLE_LEAST_NS / 1000)
#define PERIOD_MOST_US UINT64_C(1000000)

struct device {
	char uuid[HM_UUID_BYTES]; /* "": free */
	bool used, wanted;
	bool untold, untold_said;
	struct gpu_busy_list list;
	uint64_t seen_us, period_us;
	uint64_t strangers_ns; /* when processes of no container were seen last */
	struct share_card now;
};

struct member {
	uint64_t number;
	bool kept;
	struct stat limits_stat; /* of the file that was read; st_ino 0: none */
	int fd;                  /* its region; negative: not open */
	size_t count;
	struct share shares[HM_MAX_CARDS];
};

struct shares {
	const struct agent_paths *paths;
	bool all;
	struct pid_owners owners;
	struct device devices[HM_MAX_CARDS];
	struct member **members;
	size_t count, cap;
};

/* ---- the containers */

static int device_of(struct shares *s, const char *uuid)
{
	struct device *free_one = NULL;

	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct device *d = &s->devices[i];

		if (strcmp(d->uuid, uuid) == 0)
			return (int)i;
		if (d->uuid[0] == '\0' && free_one == NULL)
			free_one = d;
	}
	if (free_one == NULL)
		return -1;
	hm_fmt(free_one->uuid, sizeof free_one->uuid, "%s", uuid);
	free_one->period_us = PERIOD_MOST_US;
	return (int)(free_one - s->devices);
}

static void close_region(struct member *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* What was learned of another region is of no use. */
static void open_region(struct shares *s, struct member *m)
{
	uint64_t spans;
	struct hm_err e;

	m->fd = region_share_open(agent_path_alloc(s->paths, m->number, HM_ALLOC_REGION).s, &e);
	for (size_t i = 0; i < m->count && m->fd >= 0; i++) {
		struct share *share = &m->shares[i];
		int card = region_share_card(m->fd, s->devices[share->device].uuid, &e);

		share->alpha = (struct alpha) { .count = 0 };
		share->card = (unsigned)card;
		if (card < 0 || region_share_read(m->fd, share->card, &spans, &share->stands, &e) < 0) {
			close_region(m);
			return;
		}
		share->error_base = share->stands.error_ns;
	}
}

static bool read_limits(struct shares *s, struct member *m, struct limits *out)
{
	hm_auto_str text = { 0 };
	struct agent_path path = agent_path_alloc(s->paths, m->number, HM_ALLOC_LIMITS);
	struct hm_err e;

	return stat(path.s, &m->limits_stat) == 0 && file_read(path.s, LIMIT_FILE_MAX_BYTES, &text, &e) == 0 &&
	       limits_parse(str_text(&text), text.n, out, &e) == 0;
}

static void load(struct shares *s, struct member *m)
{
	struct limits limits;

	close_region(m);
	m->count = 0;
	if (!read_limits(s, m, &limits)) {
		m->limits_stat = (struct stat) { .st_ino = 0 };
		return;
	}
	for (size_t i = 0; i < limits.count; i++) {
		struct share share = { .device = device_of(s, limits.cards[i].uuid),
				       .cores = limits.cards[i].cores,
				       .priority = limits.priority,
				       .policy = limits.policy };

		if (share.device >= 0)
			m->shares[m->count++] = share;
	}
}

static bool is_changed(struct shares *s, const struct member *m)
{
	const struct stat *old = &m->limits_stat;
	struct stat st;

	return stat(agent_path_alloc(s->paths, m->number, HM_ALLOC_LIMITS).s, &st) < 0 || st.st_ino != old->st_ino ||
	       st.st_mtim.tv_sec != old->st_mtim.tv_sec || st.st_mtim.tv_nsec != old->st_mtim.tv_nsec;
}

static struct member *member_of(struct shares *s, uint64_t number)
{
	struct member *m;

	for (size_t i = 0; i < s->count; i++)
		if (s->members[i]->number == number)
			return s->members[i];
	m = calloc(1, sizeof *m);
	if (m == NULL || !HM_PUSH(s->members, s->count, s->cap, m)) {
		free(m);
		return NULL;
	}
	m->number = number;
	m->fd = -1;
	return m;
}

static void drop_others(struct shares *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct member *m = s->members[i];

		if (m->kept) {
			m->kept = false;
			s->members[kept++] = m;
			continue;
		}
		close_region(m);
		free(m);
	}
	s->count = kept;
}

static void note_use(struct shares *s)
{
	bool priorities[HM_MAX_CARDS][2] = { 0 };

	for (size_t i = 0; i < HM_MAX_CARDS; i++)
		s->devices[i].used = s->devices[i].wanted = false;
	for (size_t i = 0; i < s->count; i++) {
		for (size_t k = 0; k < s->members[i]->count; k++) {
			const struct share *share = &s->members[i]->shares[k];
			struct device *d = &s->devices[share->device];

			priorities[share->device][share->priority] = d->used = true;
			d->wanted |= s->all || share_is_limited(share) || share->held;
		}
	}
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct device *d = &s->devices[i];

		d->wanted |= priorities[i][0] && priorities[i][1];
		if (d->used)
			continue;
		gpu_busy_fini(&d->list);
		*d = (struct device) { .uuid = "" };
	}
}

void shares_set(struct shares *s, const struct shares_container *containers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct member *m = member_of(s, containers[i].number);

		if (m == NULL)
			continue;
		m->kept = true;
		if (m->limits_stat.st_ino == 0 || is_changed(s, m))
			load(s, m);
		if (m->fd < 0 && m->count > 0)
			open_region(s, m);
		for (size_t k = 0; k < m->count; k++)
			m->shares[k].held = containers[i].held;
	}
	drop_others(s);
	note_use(s);
}

bool shares_wanted(const struct shares *s)
{
	for (size_t i = 0; i < HM_MAX_CARDS; i++)
		if (s->devices[i].wanted)
			return true;
	return false;
}

/* ---- a pass */

void shares_read(struct shares *s, struct gpu_driver *gpu)
{
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct device *d = &s->devices[i];
		struct hm_err e;
		int r = -HM_EAGAIN;

		d->list.count = 0;
		if (d->wanted && gpu != NULL)
			r = gpu_busy_read(gpu, d->uuid, d->seen_us, &d->list, &e);
		d->untold = r == -HM_EUNSUPPORTED;
		d->now = (struct share_card) { .seen = r == 0 };
	}
}

/* From the driver's clock to ours. */
static void place_sample(struct device *d, uint64_t now_ns, uint64_t wall_us)
{
	uint64_t until = d->list.until_us, before = d->seen_us, step = until - before;
	uint64_t ago = until < wall_us ? wall_us - until : 0;

	/* The clock of the stamps was set back: what comes would look old for ever. */
	if (d->seen_us > wall_us + PERIOD_MOST_US)
		d->seen_us = 0;
	if (d->list.count == 0 || until <= before)
		return;
	d->seen_us = until;
	if (before == 0 || until > wall_us + PERIOD_MOST_US || ago > 10 * PERIOD_MOST_US)
		return;
	if (step <= d->period_us + d->period_us / 2) {
		d->now.to_ns = now_ns - ago * 1000;
		d->now.from_ns = d->now.to_ns - step * 1000;
	}
	if (step < d->period_us)
		d->period_us = HM_MAX(step, PERIOD_LEAST_US);
	else
		d->period_us += (HM_MIN(step, PERIOD_MOST_US) - d->period_us) / 16;
}

static void note_regions(struct shares *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->count; i++) {
		struct member *m = s->members[i];

		for (size_t k = 0; k < m->count && m->fd >= 0; k++) {
			struct share *share = &m->shares[k];
			struct region_orders stands;
			uint64_t spans;
			struct hm_err e;

			if (region_share_read(m->fd, share->card, &spans, &stands, &e) < 0)
				close_region(m); /* opened anew by shares_set, should there be another */
			else
				share_note(share, now_ns, spans, &stands);
		}
	}
}

static struct share *share_of(struct shares *s, uint64_t number, int device)
{
	for (size_t i = 0; i < s->count; i++) {
		struct member *m = s->members[i];

		if (m->number != number)
			continue;
		for (size_t k = 0; k < m->count; k++)
			if (m->shares[k].device == device)
				return &m->shares[k];
	}
	return NULL;
}

static void attribute(struct shares *s, int device, uint64_t now_ns)
{
	struct device *d = &s->devices[device];

	for (size_t i = 0; i < d->list.count; i++) {
		const struct gpu_busy *busy = &d->list.items[i];
		uint64_t number;
		struct share *share = NULL;

		if (busy->percent == 0)
			continue;
		d->now.used_percent += busy->percent;
		number = pid_owners_number(&s->owners, busy->pid, now_ns);
		if (number != 0)
			share = share_of(s, number, device);
		if (share != NULL)
			share->used_percent += busy->percent;
		else
			d->strangers_ns = now_ns;
	}
	d->now.strangers = share_is_at_work(d->strangers_ns, now_ns);
}

static void take_samples(struct shares *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->count; i++) {
		for (size_t k = 0; k < s->members[i]->count; k++) {
			struct share *share = &s->members[i]->shares[k];
			struct share_card *card = &s->devices[share->device].now;

			if (share->used_percent > 0 || card->to_ns > card->from_ns)
				share_sample(share, card, now_ns);
			share->used_percent = 0;
			if (share_is_at_work(share->at_work_ns, now_ns))
				card->at_work[share->priority]++;
		}
	}
}

static void write_orders(struct shares *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->count; i++) {
		struct member *m = s->members[i];

		for (size_t k = 0; k < m->count && m->fd >= 0; k++) {
			struct share *share = &m->shares[k];
			const struct region_orders want = share_orders(share, &s->devices[share->device].now, now_ns);
			struct hm_err e;

			if (region_share_write(m->fd, share->card, &share->stands, &want, &e) < 0)
				close_region(m);
		}
	}
}

void shares_apply(struct shares *s, uint64_t now_ns, uint64_t wall_us)
{
	note_regions(s, now_ns);
	for (int i = 0; i < HM_MAX_CARDS; i++) {
		place_sample(&s->devices[i], now_ns, wall_us);
		attribute(s, i, now_ns);
	}
	take_samples(s, now_ns);
	write_orders(s, now_ns);
}

void shares_tell_busy(const struct shares *s, shares_teller *tell, void *arg)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct member *m = s->members[i];

		for (size_t k = 0; k < m->count; k++)
			tell(arg, m->number, s->devices[m->shares[k].device].uuid, m->shares[k].busy_ns);
	}
}

bool shares_at_work(const struct shares *s)
{
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		const struct share_card *card = &s->devices[i].now;

		if (card->strangers || card->at_work[0] + card->at_work[1] > 0)
			return true;
	}
	return false;
}

const char *shares_untold(struct shares *s)
{
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct device *d = &s->devices[i];

		if (!d->untold || d->untold_said)
			continue;
		d->untold_said = true;
		return d->uuid;
	}
	return NULL;
}

/* ---- */

int shares_new(const struct agent_paths *paths, const char *proc, bool all, struct shares **out, struct hm_err *e)
{
	struct shares *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "compute shares");
	s->paths = paths;
	s->all = all;
	s->owners.proc = proc;
	s->owners.alloc = paths->alloc.s;
	*out = s;
	return 0;
}

void shares_free(struct shares *s)
{
	if (s == NULL)
		return;
	drop_others(s);
	for (size_t i = 0; i < HM_MAX_CARDS; i++)
		gpu_busy_fini(&s->devices[i].list);
	pid_owners_fini(&s->owners);
	free(s->members);
	free(s);
}
