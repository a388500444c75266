#include "agent/reload/selftest.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/options/runtime.h"
#include "agent/processes/sight.h"
#include "base/log.h"
#include "base/str.h"
#include "base/texts.h"
#include "contract/host.h"
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

/* On a host without containers, or where runtime and agent share one root, nothing is mounted in. A pod never shares
 * the runtime's root. */
static bool is_apart(const struct selftest_facts *f)
{
	bool in_container = f->in_pod || piece_is(mount_of(f, "/").type, "overlay");

	return in_container && (f->in_pod || !is_root(mount_of(f, f->plugin_dir)));
}

struct selftest_choice selftest_choose(const struct selftest_facts *f)
{
	if (!is_apart(f))
		return (struct selftest_choice) { false, false };
	return (struct selftest_choice) { is_root(mount_of(f, f->cdi_dir)),
					  is_root(mount_of(f, f->state_dir)) && !is_root(mount_of(f, f->plugin_dir)) };
}

int selftest_check(const struct selftest_facts *f, bool late, struct hm_err *e)
{
	if (!is_apart(f))
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

/* The facts with what they point to. */
struct gathered {
	struct selftest_facts facts;
	struct str mounts;
	char cdi[PATH_MAX], plugin[PATH_MAX], state[PATH_MAX];
};

static int gather(const struct agent_paths *p, struct gathered *g, struct hm_err *e)
{
	resolve(p->cdi.s, g->cdi);
	resolve(p->plugin_dir.s, g->plugin);
	resolve(p->state.s, g->state);
	if (file_read("/proc/self/mountinfo", MOUNTINFO_MAX_BYTES, &g->mounts, e) < 0)
		return -e->code;
	g->facts = (struct selftest_facts) { str_text(&g->mounts),
					     g->mounts.n,
					     getenv("KUBERNETES_SERVICE_HOST") != NULL,
					     g->cdi,
					     g->plugin,
					     g->state };
	return 0;
}

static int settle_state(struct agent_options *o, const struct agent_paths *p, struct hm_err *e)
{
	char below[AGENT_PATH_BYTES];

	hm_fmt(below, sizeof below, "%s/" HM_STATE_BELOW_PLUGINS, p->plugin_dir.s);
	o->state_dir = texts_keep(o->texts, below);
	if (o->state_dir == NULL)
		return hm_err_set(e, HM_ENOMEM, "state folder");
	log_info("the state folder is not mounted from the node; it is kept in the kubelet's folder",
		 KV("instead_of", HM_STATE_DIR), KV("path", o->state_dir));
	return 0;
}

/* The runtime as the Node told it the last time; agent/hami/binding_choice.h keeps it. Slices know no Node: what the
 * kubelet hands out there is CDI's or nothing. */
static void settle_binding(struct agent_options *o, const struct agent_paths *p, bool classic)
{
	struct runtime runtime = { 0 };

	if (agent_is_hami(o))
		runtime_read(p->runtime.s, &runtime);
	o->binding_is_auto = true;
	o->binding = classic || !runtime_does_cdi(&runtime) ? "classic" : "late";
	if (classic)
		log_info("the node's CDI folder is not mounted; binding classic", KV("path", p->cdi.s));
	else if (!agent_binds_late(o))
		log_info("the container runtime does no CDI by itself; binding classic",
			 KV("runtime", runtime.container));
	else if (runtime_wants_annotations(&runtime))
		o->cdi_annotations = true;
}

int selftest_settle(struct agent_options *o, struct hm_err *e)
{
	struct selftest_choice choice;
	struct gathered g = { 0 };
	struct agent_paths paths;

	if (agent_paths_init(&paths, o, e) < 0 || gather(&paths, &g, e) < 0) {
		str_fini(&g.mounts);
		return hm_err_wrap(e, "self-test");
	}
	choice = selftest_choose(&g.facts);
	str_fini(&g.mounts);
	if (choice.state_below_plugins && strcmp(o->state_dir, HM_STATE_DIR) == 0 &&
	    (settle_state(o, &paths, e) < 0 || agent_paths_init(&paths, o, e) < 0))
		return -e->code;
	if (strcmp(o->binding, "auto") == 0)
		settle_binding(o, &paths, choice.classic);
	return 0;
}

int selftest_run(const struct agent_options *o, const struct agent_paths *p, struct hm_err *e)
{
	struct gathered g = { 0 };
	bool in_pod;
	int r = gather(p, &g, e);

	in_pod = r == 0 && g.facts.in_pod;
	if (r == 0)
		r = selftest_check(&g.facts, agent_binds_late(o), e);
	str_fini(&g.mounts);
	if (r < 0 || make_folders(o, p, e) < 0)
		return hm_err_wrap(e, "self-test");
	if (in_pod && !sight_of_node("/proc", p->kubelet_socket.s))
		log_warn("neither the kubelet nor a container is visible here: give this pod hostPID, else nothing is "
			 "cleaned up behind ended containers");
	return 0;
}
