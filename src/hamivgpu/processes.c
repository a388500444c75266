/* Processes on the cards. The driver knows pids of the host, a region those of its container. They are one process
 * where /proc/<host pid> says so: innermost NSpid, start time and pid namespace. */
#include "hamivgpu/view.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/num.h"
#include "region/process_id.h"

enum { MAX_PROCESSES = 4096, PROC_PATH_BYTES = 512 };

struct identity { /* of a process of the host; 0: /proc does not say */
	uint64_t inner_pid, start_time, pid_namespace;
	char name[64];
};

static size_t read_proc(const char *proc, unsigned pid, const char *file, char *out, size_t cap)
{
	char path[PROC_PATH_BYTES];
	long n;

	hm_fmt(path, sizeof path, "%s/%u/%s", proc, pid, file);
	n = read_small_file(path, out, cap);
	return n < 0 ? 0 : (size_t)n;
}

/* "pid:[4026531836]" */
static uint64_t namespace_of(const char *proc, unsigned pid)
{
	char path[PROC_PATH_BYTES], text[64];
	ssize_t n;
	struct cur c;

	hm_fmt(path, sizeof path, "%s/%u/ns/pid", proc, pid);
	n = readlink(path, text, sizeof text);
	c = cur_of(text, n < 0 ? 0 : (size_t)n);
	cur_word(&c, "pid:[");
	return cur_u64(&c, ']', UINT32_MAX);
}

static struct identity identify(const char *proc, unsigned pid)
{
	struct identity id = { 0 };
	char text[4096];
	size_t n = read_proc(proc, pid, "comm", text, sizeof id.name);
	bool dead;

	n -= n > 0 && text[n - 1] == '\n';
	if (!piece_copy((struct piece) { text, n }, id.name, sizeof id.name))
		id.name[0] = '\0';
	n = read_proc(proc, pid, "status", text, sizeof text);
	if (!process_status_inner_pid(text, n, &id.inner_pid))
		id.inner_pid = 0;
	n = read_proc(proc, pid, "stat", text, sizeof text);
	if (!process_stat_parse(text, n, &id.start_time, &dead))
		id.start_time = 0;
	id.pid_namespace = namespace_of(proc, pid);
	return id;
}

/* What /proc does not say is left out; what the region does not say is not: it is the container's to write, and would
 * claim the processes of others. */
static bool is_member(const struct hamivgpu_member *m, const struct identity *id)
{
	if (id->inner_pid == 0 || m->pid != id->inner_pid)
		return false;
	return (id->start_time == 0 || m->start_time == id->start_time) &&
	       (id->pid_namespace == 0 || m->pid_namespace == id->pid_namespace);
}

/* Ties a process to its claim. */
static void find_claim(struct view *v, const struct identity *id, struct hamivgpu_process *p)
{
	for (size_t i = 0; i < v->claim_count; i++) {
		struct view_claim *claim = &v->claims[i];

		for (size_t j = 0; j < claim->c.member_count; j++) {
			if (!is_member(&claim->members[j], id))
				continue;
			claim->shown[j] = true;
			p->claim = (int)i;
			p->container_pid = claim->members[j].pid;
			return;
		}
	}
}

static int add_process(struct view *v, const struct hamivgpu_process *p, struct hm_err *e)
{
	if (!HM_PUSH(v->processes, v->process_count, v->process_cap, *p))
		return hm_err_set(e, HM_ENOMEM, "processes");
	return 0;
}

static int add_card_processes(struct view *v, struct gpu_driver *driver, size_t card, const char *proc,
			      struct gpu_process *found, struct hm_err *e)
{
	struct hm_err why;
	size_t count = 0;
	int r = gpu_processes(driver, v->cards[card].uuid, found, MAX_PROCESSES, &count, &why);

	if (r == -HM_ENOMEM)
		return hm_err_set(e, HM_ENOMEM, "%s", why.msg);
	if (r < 0)
		return r == -HM_EUNSUPPORTED ? 0 : view_add_problem(v, why.msg, e);
	for (size_t i = 0; i < HM_MIN(count, (size_t)MAX_PROCESSES); i++) {
		struct identity id = identify(proc, found[i].pid);
		struct hamivgpu_process p = {
			.pid = found[i].pid,
			.card = (int)card,
			.memory_used = found[i].used_bytes, /* UINT64_MAX is unknown on both sides */
			.claim = -1,
		};

		hm_fmt(p.name, sizeof p.name, "%s", id.name);
		find_claim(v, &id, &p);
		r = add_process(v, &p, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The host's processes, for looking members up. */
struct host_process {
	unsigned pid;
	uint64_t pid_namespace;
};
struct host {
	const char *proc;
	struct host_process *items;
	size_t count, cap;
};

static int read_host(struct host *h, struct hm_err *e)
{
	DIR *dir = opendir(h->proc);
	bool ok = true;
	struct dirent *d;
	uint64_t pid;

	while (ok && dir != NULL && (d = readdir(dir)) != NULL) {
		if (num_u64_str(d->d_name, INT32_MAX, &pid))
			ok = HM_PUSH(h->items, h->count, h->cap,
				     (struct host_process) { (unsigned)pid, namespace_of(h->proc, (unsigned)pid) });
	}
	if (dir != NULL)
		closedir(dir);
	return ok ? 0 : hm_err_set(e, HM_ENOMEM, "processes");
}

/* True where the member's container is in sight and has no such process: it ended, and its charge is on its way back.
 * Without the host's pid namespace no container is in sight, and nobody is taken for ended. */
static bool has_ended(const struct host *h, const struct hamivgpu_member *m)
{
	bool in_sight = false;

	for (size_t i = 0; i < h->count; i++) {
		struct identity id;

		if (h->items[i].pid_namespace != m->pid_namespace)
			continue;
		in_sight = true;
		id = identify(h->proc, h->items[i].pid);
		if (is_member(m, &id))
			return false;
	}
	return in_sight;
}

/* Members that the driver does not show: one line for each card on which they have something, or one. */
static int add_unshown(struct view *v, size_t at, size_t member, struct hm_err *e)
{
	const struct hamivgpu_claim *claim = &v->claims[at].c;
	struct hamivgpu_process p = { .claim = (int)at, .container_pid = claim->members[member].pid, .card = -1 };
	int r = 0;

	for (size_t i = 0; i < claim->share_count && r == 0; i++) {
		if (claim->members[member].memory_used[i] == 0)
			continue;
		p.card = claim->shares[i].card;
		p.memory_used = claim->members[member].memory_used[i];
		r = add_process(v, &p, e);
	}
	if (r < 0 || p.memory_used > 0)
		return r;
	p.card = claim->share_count == 1 ? claim->shares[0].card : -1;
	return add_process(v, &p, e);
}

int view_read_processes(struct view *v, struct gpu_driver *driver, const char *proc_dir, struct hm_err *e)
{
	hm_auto_heap struct gpu_process *found = calloc(MAX_PROCESSES, sizeof *found);
	struct host host = { .proc = proc_dir };
	int r = 0;

	if (found == NULL)
		return hm_err_set(e, HM_ENOMEM, "processes");
	for (size_t i = 0; i < v->card_count && driver != NULL && r == 0; i++) {
		if (v->cards[i].index >= 0)
			r = add_card_processes(v, driver, i, proc_dir, found, e);
	}
	if (r == 0)
		r = read_host(&host, e);
	for (size_t i = 0; i < v->claim_count && r == 0; i++) {
		for (size_t j = 0; j < v->claims[i].c.member_count && r == 0; j++) {
			if (!v->claims[i].shown[j] && !has_ended(&host, &v->claims[i].members[j]))
				r = add_unshown(v, i, j, e);
		}
	}
	free(host.items);
	return r;
}
