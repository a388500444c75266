#include "kube/token.h"

#include <errno.h>
#include <string.h>

#include "io/file.h"

int kube_token_init(struct kube_token *t, const char *file, const char *text, struct hm_err *e)
{
	*t = (struct kube_token) { .file = file };
	if (text != NULL)
		str_add(&t->text, text);
	return str_failed(&t->text) ? hm_err_set(e, HM_ENOMEM, "out of memory") : 0;
}

void kube_token_fini(struct kube_token *t)
{
	str_wipe(&t->text);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void trim(struct str *s)
{
	while (s->n > 0 && strchr(" \t\r\n", s->p[s->n - 1]) != NULL)
		s->p[--s->n] = '\0';
}

/* It becomes part of a header: no blank, nothing that ends a line. */
static bool is_token(const struct str *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if ((unsigned char)s->p[i] <= ' ' || (unsigned char)s->p[i] >= 0x7f)
			return false;
	}
	return s->n > 0;
}

int kube_token_refresh(struct kube_token *t, bool force, bool *changed, struct hm_err *e)
{
	hm_auto_secret text = { 0 };
	struct stat st;
	int r;

	*changed = false;
	if (t->file == NULL)
		return 0;
	if (stat(t->file, &st) < 0)
		return hm_err_errno(e, errno, "token file %s", t->file);
	if (!force && t->text.n > 0 && same_file(&st, &t->seen))
		return 0;
	r = file_read(t->file, KUBE_MAX_TOKEN_BYTES, &text, e);
	if (r < 0) {
		hm_err_wrap(e, "token");
		return r;
	}
	trim(&text);
	if (!is_token(&text))
		return hm_err_set(e, HM_EINVAL, "token file %s holds no token", t->file);
	*changed = text.n != t->text.n || memcmp(text.p, t->text.p, text.n) != 0;
	str_wipe(&t->text);
	t->text = text;
	text = (struct str) { 0 };
	t->seen = st;
	return 0;
}
