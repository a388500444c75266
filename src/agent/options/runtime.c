#include "agent/options/runtime.h"

#include <string.h>

#include "base/str.h"
#include "core/cursor.h"
#include "core/macros.h"
#include "io/file.h"

enum { FILE_MAX_BYTES = 1024 };

struct version {
	uint64_t major, minor;
};

/* "v1.34.4+k3s1", "1.7.22": the first two numbers. */
static bool read_version(struct piece text, struct version *out)
{
	struct cur c = cur_of(text.p, text.n);
	size_t digits = 0;

	if (text.n > 0 && text.p[0] == 'v')
		c.p++;
	out->major = cur_u64(&c, '.', 1000000);
	while (c.p + digits < c.end && c.p[digits] >= '0' && c.p[digits] <= '9')
		digits++;
	return !c.bad && piece_u64((struct piece) { c.p, digits }, 1000000, &out->minor);
}

static bool is_from(struct version v, uint64_t major, uint64_t minor)
{
	return v.major > major || (v.major == major && v.minor >= minor);
}

bool runtime_equal(const struct runtime *a, const struct runtime *b)
{
	return strcmp(a->kubelet, b->kubelet) == 0 && strcmp(a->container, b->container) == 0;
}

bool runtime_does_cdi(const struct runtime *r)
{
	static const struct {
		const char *name;
		uint64_t major, minor;
	} since[] = { { "containerd://", 2, 0 }, { "cri-o://", 1, 23 } };
	struct piece text = { r->container, strlen(r->container) };
	struct version v;

	if (text.n == 0)
		return true;
	for (size_t i = 0; i < HM_COUNT(since); i++) {
		size_t n = strlen(since[i].name);

		if (piece_starts(text, since[i].name))
			return read_version((struct piece) { text.p + n, text.n - n }, &v) &&
			       is_from(v, since[i].major, since[i].minor);
	}
	return false;
}

bool runtime_wants_annotations(const struct runtime *r)
{
	struct version v;

	return read_version((struct piece) { r->kubelet, strlen(r->kubelet) }, &v) && !is_from(v, 1, 29);
}

/* Two lines: the kubelet's version, the runtime's name and version. */
void runtime_read(const char *path, struct runtime *out)
{
	hm_auto_str text = { 0 };
	struct runtime r;
	struct cur c;

	*out = (struct runtime) { 0 };
	if (file_read(path, FILE_MAX_BYTES, &text, NULL) < 0)
		return;
	c = cur_of(str_text(&text), text.n);
	if (piece_copy(cur_until(&c, '\n'), r.kubelet, sizeof r.kubelet) &&
	    piece_copy(cur_until(&c, '\n'), r.container, sizeof r.container) && cur_at_end(&c))
		*out = r;
}

int runtime_write(const char *path, const struct runtime *r, struct hm_err *e)
{
	hm_auto_str text = { 0 };

	str_addf(&text, "%s\n%s\n", r->kubelet, r->container);
	if (str_failed(&text))
		return hm_err_set(e, HM_ENOMEM, "%s", path);
	return file_replace(path, text.p, text.n, 0644, e);
}
