#include "agent/selftest.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sight.h"
#include "base/log.h"
#include "base/str.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "io/file.h"

enum { MOUNTINFO_MAX_BYTES = 8 * 1024 * 1024 };

/* One line of mountinfo: the mount point (fifth field) and the file system's type (behind " - "). */
struct mount {
	struct piece point, type;
};

static bool parse_line(struct piece line, struct mount *out)
{
	struct cur c = cur_of(line.p, line.n);
	const char *dash;

	for (int i = 0; i < 4; i++)
		cur_until(&c, ' ');
	out->point = cur_until(&c, ' ');
	if (c.bad)
		return false;
	dash = memmem(c.p, (size_t)(c.end - c.p), "- ", 2);
	if (dash == NULL)
		return false;
	c = cur_of(dash + 2, (size_t)(c.end - dash - 2));
	out->type = cur_until(&c, ' ');
	return !c.bad;
}

static bool covers(struct piece point, const char *path)
{
	if (point.n == 1)
		return true; /* "/" */
	return strncmp(path, point.p, point.n) == 0 && (path[point.n] == '\0' || path[point.n] == '/');
}

/* The mount that `path` lies on: the longest point above it, of equals the later one, which hides the earlier. */
static struct mount mount_of(const struct selftest_facts *f, const char *path)
{
	struct cur c = cur_of(f->mountinfo, f->mountinfo_n);
	struct mount best = { { "", 0 }, { "", 0 } }, m;

	while (c.p < c.end) {
		struct piece line = cur_line(&c);

		if (parse_line(line, &m) && covers(m.point, path) && m.point.n >= best.point.n)
			best = m;
	}
	return best;
}

static bool is_root(struct mount m)
{
	return m.point.n == 1;
}

int selftest_check(const struct selftest_facts *f, bool late, struct hm_err *e)
{
	bool in_container = f->in_pod || piece_is(mount_of(f, "/").type, "overlay");

	/* On a host without containers, or where runtime and agent share one root, nothing is mounted in. A pod never
	 * shares the runtime's root. */
	if (!in_container || (!f->in_pod && is_root(mount_of(f, f->plugin_dir))))
		return 0;
	if (late && is_root(mount_of(f, f->cdi_dir)))
		return hm_err_set(
			e, HM_EINVAL,
			"late binding needs the node's CDI folder, but %s is this container's own: mount it from "
			"the host (hostPath %s at %s), or use --binding=classic",
			f->cdi_dir, f->cdi_dir, f->cdi_dir);
	if (is_root(mount_of(f, f->state_dir)))
		return hm_err_set(
			e, HM_EINVAL,
			"%s is this container's own, so that no other container can mount what lies there: mount "
			"it from the host (hostPath %s at %s)",
			f->state_dir, f->state_dir, f->state_dir);
	return 0;
}

/* realpath of a folder that may not exist yet: of its nearest ancestor that does, and the rest as it is written. */
static void resolve(const char *path, char out[PATH_MAX])
{
	char part[PATH_MAX], real[PATH_MAX];
	size_t n = strlen(path);

	memcpy(part, path, n + 1);
	while (realpath(part, real) == NULL) {
		while (n > 0 && part[n] != '/')
			n--;
		part[n] = '\0';
		if (n == 0) {
			hm_fmt(out, PATH_MAX, "%s", path);
			return;
		}
	}
	hm_fmt(out, PATH_MAX, "%s%s", strcmp(real, "/") == 0 ? "" : real, path + strlen(part));
}

static int make_folders(const struct agent_options *o, const struct agent_paths *p, struct hm_err *e)
{
	const char *folders[] = { p->state.s, p->claims.s, p->alloc.s, p->lib.s, p->cdi.s };
	size_t count = HM_COUNT(folders) - (agent_binds_late(o) ? 0 : 1);

	for (size_t i = 0; i < count; i++) {
		if (file_mkdirs(folders[i], 0755, e) < 0)
			return -e->code;
		if (access(folders[i], W_OK | X_OK) < 0)
			return hm_err_errno(e, errno, "write to %s", folders[i]);
	}
	/* What a container's root leaves in its usage folder (a setuid program) must be out of other users' reach.
	 * Bind mounts do not go through the folders above. */
	if (chmod(p->alloc.s, 0750) < 0)
		return hm_err_errno(e, errno, "chmod %s", p->alloc.s);
	return 0;
}

int selftest_run(const struct agent_options *o, const struct agent_paths *p, struct hm_err *e)
{
	char cdi[PATH_MAX], plugin[PATH_MAX], state[PATH_MAX];
	hm_auto_str mounts = { 0 };
	struct selftest_facts facts = { .in_pod = getenv("KUBERNETES_SERVICE_HOST") != NULL };

	resolve(p->cdi.s, cdi);
	resolve(p->plugin_dir.s, plugin);
	resolve(p->state.s, state);
	if (file_read("/proc/self/mountinfo", MOUNTINFO_MAX_BYTES, &mounts, e) < 0)
		return hm_err_wrap(e, "self-test");
	facts.mountinfo = str_text(&mounts);
	facts.mountinfo_n = mounts.n;
	facts.cdi_dir = cdi;
	facts.plugin_dir = plugin;
	facts.state_dir = state;
	if (selftest_check(&facts, agent_binds_late(o), e) < 0 || make_folders(o, p, e) < 0)
		return hm_err_wrap(e, "self-test");
	if (facts.in_pod && !sight_of_node("/proc", p->kubelet_socket.s))
		log_warn("neither the kubelet nor a container is visible here: give this pod hostPID, else nothing is "
			 "cleaned up behind ended containers");
	return 0;
}
