#include "agent/options/mig_nodes.h"

#include <string.h>

#include "core/cursor.h"
#include "core/fmt.h"
#include "io/file.h"

enum { MAX_LIST_BYTES = 1 << 20 }; /* 32 cards with all their instances are 140 KB */

/* "<name> <number>" of the line that has this name. */
static bool find(const char *text, size_t n, const char *name, unsigned *minor)
{
	const char *end = text + n;
	size_t name_n = strlen(name);
	uint64_t number;

	for (const char *line = text; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t line_n = (size_t)((stop != NULL ? stop : end) - line);

		if (line_n > name_n + 1 && memcmp(line, name, name_n) == 0 && line[name_n] == ' ' &&
		    piece_u64((struct piece) { line + name_n + 1, line_n - name_n - 1 }, UINT32_MAX, &number)) {
			*minor = (unsigned)number;
			return true;
		}
		line = stop != NULL ? stop + 1 : end;
	}
	return false;
}

int mig_nodes_find(const char *text, size_t n, const struct mig_node *of, unsigned *gi_minor, unsigned *ci_minor,
		   struct hm_err *e)
{
	char gi[64], ci[64];

	hm_fmt(gi, sizeof gi, "gpu%u/gi%u/access", of->card_minor, of->gi);
	hm_fmt(ci, sizeof ci, "gpu%u/gi%u/ci%u/access", of->card_minor, of->gi, of->ci);
	if (find(text, n, gi, gi_minor) && find(text, n, ci, ci_minor))
		return 0;
	return hm_err_set(e, HM_ENOTFOUND, "no node for %s", ci);
}

static int add(const char *root, unsigned minor, struct cdi_edits *out, struct hm_err *e)
{
	char inside[64], host[1024];

	hm_fmt(inside, sizeof inside, "/dev/nvidia-caps/nvidia-cap%u", minor);
	hm_fmt(host, sizeof host, "%s%s", root != NULL && strcmp(root, "/") != 0 ? root : "", inside);
	return cdi_add_node(out, inside, host, "rw") < 0 ? hm_err_set(e, HM_ENOMEM, "container edits") : 0;
}

int mig_nodes_add(const char *list, const char *root, const struct mig_node *of, struct cdi_edits *out,
		  struct hm_err *e)
{
	hm_auto_str text = { 0 };
	unsigned gi, ci;

	if (file_read(list, MAX_LIST_BYTES, &text, e) < 0 ||
	    mig_nodes_find(str_text(&text), text.n, of, &gi, &ci, e) < 0) {
		hm_err_wrap(e, "%s", list);
		e->code = HM_EAGAIN;
		return -HM_EAGAIN;
	}
	return add(root, gi, out, e) < 0 || add(root, ci, out, e) < 0 ? -e->code : 0;
}
