#include "agent/processes/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "io/file.h"

/* proc_pid_mountinfo(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
struct line {
	uint64_t id;
	struct piece device, root, at;
};

static bool read_text(const char *path, struct str *text)
{
	hm_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	char some[16384];
	ssize_t n = 0;

	str_clear(text);
	while (fd >= 0 && text->n < MOUNTS_MAX_BYTES && (n = read(fd, some, sizeof some)) > 0)
		str_add_n(text, some, (size_t)n);
	return fd >= 0 && n >= 0 && !str_failed(text);
}

static bool next_line(struct cur *c, struct line *out)
{
	struct piece whole = cur_line(c);
	struct cur l = cur_of(whole.p, whole.n);

	if (c->bad)
		return false;
	out->id = cur_u64(&l, ' ', INT32_MAX);
	cur_until(&l, ' ');
	out->device = cur_until(&l, ' ');
	out->root = cur_until(&l, ' ');
	out->at = cur_until(&l, ' ');
	return !l.bad;
}

/* The kernel writes space, tab, newline and backslash as three octal digits behind a backslash. */
static void add_plain(struct str *s, struct piece p)
{
	for (size_t i = 0; i < p.n; i++) {
		if (p.p[i] == '\\' && p.n - i >= 4) {
			str_addc(s, (char)((p.p[i + 1] - '0') << 6 | (p.p[i + 2] - '0') << 3 | (p.p[i + 3] - '0')));
			i += 3;
			continue;
		}
		str_addc(s, p.p[i]);
	}
}

bool mounts_visit(const char *proc, const char *pid, struct str *text, mounts_visitor *visit, void *arg)
{
	hm_auto_str file = { 0 }, at = { 0 };
	char path[PATH_MAX];
	struct line line;
	struct cur c;

	hm_fmt(path, sizeof path, "%s/%s/mountinfo", proc, pid);
	if (!read_text(path, text))
		return false;
	c = cur_of(str_text(text), text->n);
	while (next_line(&c, &line)) {
		str_clear(&file);
		str_clear(&at);
		str_add_n(&file, line.device.p, line.device.n);
		str_addc(&file, ' ');
		add_plain(&file, line.root);
		add_plain(&at, line.at);
		if (!str_failed(&file) && !str_failed(&at) && !visit(arg, str_text(&file), str_text(&at)))
			break;
	}
	return true;
}

/* ---- our own */

struct own_mount {
	uint64_t id;
	char *device, *root, *at;
};

struct own_mounts {
	struct own_mount *items;
	size_t count, cap;
};

static char *plain(struct piece p)
{
	struct str s = { 0 };

	str_add(&s, "");
	add_plain(&s, p);
	return str_take(&s);
}

static void mount_fini(struct own_mount *m)
{
	free(m->device);
	free(m->root);
	free(m->at);
}

static bool add(struct own_mounts *o, const struct line *line)
{
	struct own_mount m = { line->id, plain(line->device), plain(line->root), plain(line->at) };

	if (m.device != NULL && m.root != NULL && m.at != NULL && HM_PUSH(o->items, o->count, o->cap, m))
		return true;
	mount_fini(&m);
	return false;
}

int own_mounts_new(struct own_mounts **out, struct hm_err *e)
{
	hm_auto(own_mounts) *o = calloc(1, sizeof *o);
	hm_auto_str text = { 0 };
	struct line line;
	struct cur c;

	if (o == NULL)
		return hm_err_set(e, HM_ENOMEM, "our own mounts");
	if (!read_text("/proc/self/mountinfo", &text))
		return hm_err_errno(e, errno, "read /proc/self/mountinfo");
	c = cur_of(str_text(&text), text.n);
	while (next_line(&c, &line))
		if (!add(o, &line))
			return hm_err_set(e, HM_ENOMEM, "our own mounts");
	*out = HM_STEAL(o);
	return 0;
}

void own_mounts_free(struct own_mounts *o)
{
	if (o == NULL)
		return;
	for (size_t i = 0; i < o->count; i++)
		mount_fini(&o->items[i]);
	free(o->items);
	free(o);
}

/* Which mount an open file was reached by: only the kernel knows, where mounts lie on each other. */
static bool mount_of(int fd, uint64_t *id)
{
	hm_auto_str text = { 0 };
	char path[64];
	struct hm_err e;
	struct cur c;

	hm_fmt(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	if (file_read(path, 65536, &text, &e) < 0)
		return false;
	c = cur_of(str_text(&text), text.n);
	for (struct piece l = cur_line(&c); !c.bad; l = cur_line(&c)) {
		static const char key[] = "mnt_id:\t";

		if (piece_starts(l, key))
			return piece_u64((struct piece) { l.p + strlen(key), l.n - strlen(key) }, INT32_MAX, id);
	}
	return false;
}

static bool name_below(const struct own_mount *m, const char *real, struct str *name)
{
	size_t n = strcmp(m->at, "/") == 0 ? 0 : strlen(m->at);
	const char *rest = real + n;

	if (strncmp(real, m->at, n) != 0 || (*rest != '/' && *rest != '\0'))
		return false;
	rest = strcmp(rest, "/") == 0 ? "" : rest;
	str_clear(name);
	str_addf(name, "%s ", m->device);
	if (strcmp(m->root, "/") != 0 || *rest == '\0')
		str_add(name, m->root);
	str_add(name, rest);
	return !str_failed(name);
}

bool own_mounts_name(const struct own_mounts *o, const char *path, struct str *name)
{
	hm_auto_fd fd = open(path, O_PATH | O_CLOEXEC);
	char link[64], real[PATH_MAX];
	uint64_t id;
	ssize_t n;

	hm_fmt(link, sizeof link, "/proc/self/fd/%d", fd);
	if (fd < 0 || !mount_of(fd, &id) || (n = readlink(link, real, sizeof real - 1)) <= 0)
		return false;
	real[n] = '\0';
	for (size_t i = 0; i < o->count; i++)
		if (o->items[i].id == id)
			return name_below(&o->items[i], real, name);
	return false;
}
