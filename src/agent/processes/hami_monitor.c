#include "agent/processes/hami_monitor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/processes/hami_file.h"
#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "io/file.h"
#include "region/limit_file.h"
#include "region/region.h"

/* The name tells our files from HAMi-core's, which are named by random UUIDs. */
#define FILE_NAME "hami-vgpu.cache"

struct card_use {
	char uuid[HM_UUID_BYTES];   /* "": free */
	uint64_t busy_ns, spans_ns; /* by the driver's samples; by libvgpu, as of the last round */
	uint64_t told_ns;           /* busy_ns, as of the last round */
};

struct watched {
	uint64_t number;
	unsigned held; /* hami_file_write's */
	bool seen;
	uint64_t at_ms; /* the last round; 0: none yet */
	struct card_use cards[HM_MAX_CARDS];
};

struct hami_monitor {
	struct loop *loop;
	struct loop_timer *timer;
	const struct agent_paths *paths;
	const struct claims *claims;
	struct agent_path folder;
	struct hami_cache *cache;         /* scratch: 2 MB */
	struct region_process *processes; /* scratch */
	struct watched *watched;
	size_t watched_count, watched_cap;
	bool trouble_said;
};

static struct watched *find(const struct hami_monitor *m, uint64_t number)
{
	for (size_t i = 0; i < m->watched_count; i++)
		if (m->watched[i].number == number)
			return &m->watched[i];
	return NULL;
}

static struct watched *watched_of(struct hami_monitor *m, uint64_t number)
{
	struct watched *w = find(m, number);

	if (w != NULL)
		return w;
	if (!HM_PUSH(m->watched, m->watched_count, m->watched_cap, (struct watched) { .number = number }))
		return NULL;
	return &m->watched[m->watched_count - 1];
}

static struct card_use *card_of(struct watched *w, const char *uuid)
{
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct card_use *u = &w->cards[i];

		if (u->uuid[0] == '\0')
			hm_fmt(u->uuid, sizeof u->uuid, "%s", uuid);
		if (strcmp(u->uuid, uuid) == 0)
			return u;
	}
	return NULL;
}

void hami_monitor_note_busy(void *monitor, uint64_t number, const char *uuid, uint64_t busy_ns)
{
	struct watched *w = find(monitor, number);
	struct card_use *u = w != NULL ? card_of(w, uuid) : NULL;

	if (u != NULL)
		u->busy_ns = busy_ns;
}

static void forget_unseen(struct hami_monitor *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->watched_count; i++)
		if (m->watched[i].seen)
			m->watched[kept++] = m->watched[i];
	m->watched_count = kept;
}

/* How a claim's folder is called. False where its pod or container is not known (yet), or is no name of Kubernetes. */
static bool folder_name(const struct claim *c, char *out, size_t cap)
{
	if (c->pod_uid[0] == '\0' || c->container[0] == '\0' || strchr(c->pod_uid, '/') != NULL ||
	    strchr(c->container, '/') != NULL)
		return false;
	return hm_fmt(out, cap, "%s_%s", c->pod_uid, c->container) < cap;
}

/* What the container's launches took since the last round. */
static void measure(struct hami_monitor *m, struct watched *w, struct hami_file_state *s)
{
	uint64_t now = loop_now_ms(m->loop), percent_ns = HM_MAX(now - w->at_ms, UINT64_C(1)) * 10000;

	for (size_t i = 0; i < s->region->card_count; i++) {
		const struct region_card *card = &s->region->cards[i];
		struct card_use *u = card_of(w, card->uuid);
		uint64_t charged, used;

		if (u == NULL)
			continue;
		charged = card->spans_ns - u->spans_ns;
		u->spans_ns = card->spans_ns;
		used = u->busy_ns >= u->told_ns ? u->busy_ns - u->told_ns : u->busy_ns;
		u->told_ns = u->busy_ns;
		used = used != 0 ? used : charged;
		if (w->at_ms == 0 || used == 0)
			continue;
		s->launched = true;
		s->busy_percent[i] = (unsigned)HM_MIN(used / percent_ns, (uint64_t)100);
	}
	w->at_ms = now;
}

/* The limit file's: the region's is the container's own word. */
static unsigned priority_of(const struct hami_monitor *m, uint64_t number)
{
	struct agent_path path = agent_path_alloc(m->paths, number, HM_ALLOC_LIMITS);
	hm_auto_str text = { 0 };
	struct limits limits;

	if (file_read(path.s, LIMIT_FILE_MAX_BYTES, &text, NULL) < 0 ||
	    limits_parse(str_text(&text), text.n, &limits, NULL) < 0)
		return 1;
	return limits.priority;
}

static int write_claim(struct hami_monitor *m, const struct claim *c, struct watched *w, struct hm_err *e)
{
	struct agent_path region = agent_path_alloc(m->paths, c->number, HM_ALLOC_REGION);
	struct region_snapshot snapshot = { .processes = m->processes };
	struct hami_file_state state = { .region = &snapshot,
					 .priority = priority_of(m, c->number),
					 .now_s = (int64_t)time(NULL) };
	char name[400], path[AGENT_PATH_BYTES + sizeof name + sizeof FILE_NAME + 2];

	if (!folder_name(c, name, sizeof name))
		return -HM_ENOTFOUND;
	if (region_snapshot(region.s, &snapshot, e) < 0)
		return -e->code;
	measure(m, w, &state);
	hami_file_fill(m->cache, &state);
	hm_fmt(path, sizeof path, "%s/%s", m->folder.s, name);
	if (file_mkdirs(path, 0755, e) < 0)
		return -e->code;
	hm_fmt(path, sizeof path, "%s/%s/%s", m->folder.s, name, FILE_NAME);
	return hami_file_write(path, m->cache, state.launched, &w->held, e);
}

static bool is_claimed(const struct hami_monitor *m, const char *folder)
{
	char name[400];

	for (size_t i = 0; i < claims_count(m->claims); i++) {
		const struct claim *c = claims_at(m->claims, i);

		if (c->state != CLAIM_ENDED && folder_name(c, name, sizeof name) && strcmp(name, folder) == 0)
			return true;
	}
	return false;
}

/* A folder that holds anything else than our file is another program's, and stays. */
static void remove_ended(struct hami_monitor *m)
{
	DIR *dir = opendir(m->folder.s);
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		hm_auto_fd fd = -1;

		if (d->d_name[0] == '.' || is_claimed(m, d->d_name))
			continue;
		fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && unlinkat(fd, FILE_NAME, 0) == 0)
			(void)unlinkat(dirfd(dir), d->d_name, AT_REMOVEDIR);
	}
	if (dir != NULL)
		closedir(dir);
}

size_t hami_monitor_round(struct hami_monitor *m)
{
	struct hm_err e = { 0 }, trouble = { 0 };
	size_t written = 0;

	for (size_t i = 0; i < m->watched_count; i++)
		m->watched[i].seen = false;
	for (size_t i = 0; i < claims_count(m->claims); i++) {
		const struct claim *c = claims_at(m->claims, i);
		struct watched *w = c->state == CLAIM_ACTIVE ? watched_of(m, c->number) : NULL;
		int r = w != NULL ? write_claim(m, c, w, &e) : -HM_ENOTFOUND;

		if (w != NULL)
			w->seen = true;
		if (r == 0)
			written++;
		else if (r != -HM_ENOTFOUND)
			trouble = e;
	}
	forget_unseen(m);
	remove_ended(m);
	if (trouble.code != 0 && !m->trouble_said)
		log_warn("files for HAMi's monitor are not written", KV_ERR(&trouble));
	m->trouble_said = trouble.code != 0;
	return written;
}

bool hami_monitor_holds(const struct hami_monitor *m, uint64_t number)
{
	const struct watched *w = find(m, number);

	return w != NULL && w->held > 0;
}

static void on_timer(void *arg)
{
	struct hami_monitor *m = arg;

	loop_timer_arm(m->timer, HAMI_MONITOR_EVERY_MS);
	hami_monitor_round(m);
}

int hami_monitor_new(struct loop *l, const char *folder, const struct agent_paths *paths, const struct claims *claims,
		     struct hami_monitor **out, struct hm_err *e)
{
	hm_auto(hami_monitor) *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "files for HAMi's monitor");
	m->loop = l;
	m->paths = paths;
	m->claims = claims;
	m->cache = calloc(1, sizeof *m->cache);
	m->processes = calloc(REGION_MAX_PROCESSES, sizeof *m->processes);
	if (m->cache == NULL || m->processes == NULL)
		return hm_err_set(e, HM_ENOMEM, "files for HAMi's monitor");
	hm_fmt(m->folder.s, sizeof m->folder.s, "%s", folder);
	if (file_mkdirs(folder, 0755, e) < 0 || loop_timer_new(l, on_timer, m, &m->timer, e) < 0)
		return hm_err_wrap(e, "files for HAMi's monitor");
	loop_timer_arm(m->timer, HAMI_MONITOR_EVERY_MS);
	*out = HM_STEAL(m);
	return 0;
}

void hami_monitor_free(struct hami_monitor *m)
{
	if (m == NULL)
		return;
	loop_timer_free(m->timer);
	free(m->cache);
	free(m->processes);
	free(m->watched);
	free(m);
}
