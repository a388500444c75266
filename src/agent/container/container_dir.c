#include "agent/container/container_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/processes/holders.h"
#include "base/log.h"
#include "base/str.h"
#include "contract/container.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "io/file.h"
#include "region/limit_file.h"
#include "region/region.h"

/* What lies in the usage folder is the container's doing: a million files must not keep an Allocate waiting. */
enum { REMOVE_AT_ONCE = 2000, HALF_MADE_AMONG = 100 };

_Static_assert((int)CLAIM_POLICY_DEFAULT == (int)LIMIT_POLICY_DEFAULT &&
		       (int)CLAIM_POLICY_FORCE == (int)LIMIT_POLICY_FORCE &&
		       (int)CLAIM_POLICY_DISABLE == (int)LIMIT_POLICY_DISABLE,
	       "one is the other");

static void limits_of(const struct claim *c, bool oversubscribe, struct limits *out)
{
	*out = (struct limits) { .count = c->card_count,
				 .priority = c->priority,
				 .policy = (enum limit_policy)c->policy,
				 .oversubscribe = oversubscribe || c->oversubscribe };
	for (size_t i = 0; i < c->card_count; i++) {
		struct limit_card *card = &out->cards[i];

		hm_fmt(card->uuid, sizeof card->uuid, "%s",
		       c->cards[i].mig[0] != '\0' ? c->cards[i].mig : c->cards[i].uuid);
		card->memory_bytes = c->cards[i].memory_bytes;
		card->cores = c->cards[i].cores;
	}
}

/* A mounted file is an inode: rewriting the same text would leave a running container with a file that nobody sees. */
static int write_if_new(const char *path, const char *text, size_t n, struct hm_err *e)
{
	hm_auto_str old = { 0 };
	struct hm_err ignored;

	if (file_read(path, n, &old, &ignored) == 0 && old.n == n && memcmp(str_text(&old), text, n) == 0)
		return 0;
	return file_swap(path, text, n, 0644, e);
}

static int write_limits(const struct agent_paths *p, const struct claim *c, const struct limits *limits,
			struct hm_err *e)
{
	char text[LIMIT_FILE_MAX_BYTES];
	size_t n = limits_write(limits, text, sizeof text);

	if (n == 0)
		return hm_err_set(e, HM_EINTERNAL, "limit file of vGPU %llu", (unsigned long long)c->number);
	return write_if_new(agent_path_alloc(p, c->number, HM_ALLOC_LIMITS).s, text, n, e);
}

/* What a killed agent left. A region that was being made would look like something of the container's. */
static void remove_half_made(const struct agent_paths *p, uint64_t number)
{
	struct agent_path usage = agent_path_alloc(p, number, HM_ALLOC_USAGE);
	DIR *dir = opendir(usage.s);
	struct dirent *d;

	file_remove_temporaries(agent_path_alloc(p, number, "").s, "");
	for (unsigned seen = 0; dir != NULL && seen < HALF_MADE_AMONG && (d = readdir(dir)) != NULL; seen++)
		if (fnmatch("region.*.new", d->d_name, 0) == 0 && unlinkat(dirfd(dir), d->d_name, 0) < 0)
			log_warn("cannot remove a left-over file", KV("folder", usage.s), KV("name", d->d_name));
	if (dir != NULL)
		closedir(dir);
}

/* Only the region in it is writable by whatever uid the container's processes have: files of their own would fill the
 * node's disk. The container's root may still make some (container_dir_tidy). */
static int make_usage_dir(const struct agent_paths *p, uint64_t number, struct hm_err *e)
{
	struct agent_path usage = agent_path_alloc(p, number, HM_ALLOC_USAGE);

	if (file_mkdirs(usage.s, 0755, e) < 0)
		return -e->code;
	if (chmod(usage.s, 0755) < 0)
		return hm_err_errno(e, errno, "%s", usage.s);
	remove_half_made(p, number);
	return 0;
}

/* Its own processes are gone before a container starts again; others' (a shared pid namespace) stay charged. */
static void reap(const char *region)
{
	hm_auto(holder_pids) *pids = NULL;
	struct hm_err e;
	int n;

	if (holder_pids_new("/proc", &pids, &e) < 0)
		return;
	n = region_reap(region, holder_pids_alive, pids, &e);
	if (n > 0)
		log_v(2, "gave back the charge of ended processes", KV("region", region), KV_I64("processes", n));
}

int container_dir_write(const struct agent_paths *p, const struct claim *c, bool oversubscribe, struct hm_err *e)
{
	static const char preload[] = HM_CONTAINER_LIB "\n";
	struct agent_path region = agent_path_alloc(p, c->number, HM_ALLOC_REGION);
	struct limits limits;

	limits_of(c, oversubscribe, &limits);
	if (make_usage_dir(p, c->number, e) < 0 || write_limits(p, c, &limits, e) < 0 ||
	    write_if_new(agent_path_alloc(p, c->number, HM_ALLOC_PRELOAD).s, preload, sizeof preload - 1, e) < 0 ||
	    region_create(region.s, &limits, e) < 0)
		return hm_err_wrap(e, "write the folder of vGPU %llu", (unsigned long long)c->number);
	reap(region.s);
	return 0;
}

static bool has_more_than_the_region(const char *usage)
{
	static const char *const known[] = { ".", "..", "region" };
	DIR *dir = opendir(usage);
	struct dirent *d;
	bool found = false;

	while (dir != NULL && !found && (d = readdir(dir)) != NULL) {
		found = true;
		for (size_t i = 0; i < HM_COUNT(known); i++)
			found = found && strcmp(d->d_name, known[i]) != 0;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

/* Far above any layout: whoever uses the region has mapped what lies below. */
static bool cut_region(const char *region)
{
	struct stat st;

	if (lstat(region, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= CONTAINER_DIR_MAX_BYTES)
		return false;
	hm_auto_fd fd = open(region, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, CONTAINER_DIR_MAX_BYTES) == 0;
}

bool container_dir_tidy(const struct agent_paths *p, uint64_t number)
{
	bool more = has_more_than_the_region(agent_path_alloc(p, number, HM_ALLOC_USAGE).s);
	bool cut = cut_region(agent_path_alloc(p, number, HM_ALLOC_REGION).s);

	return !more && !cut;
}

int container_dir_remove(const struct agent_paths *p, uint64_t number, struct hm_err *e)
{
	return file_remove_some(agent_path_alloc(p, number, "").s, REMOVE_AT_ONCE, e);
}
