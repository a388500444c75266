#include "core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "core/fmt.h"

int hm_err_set(struct hm_err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e != NULL) {
		e->code = code;
		va_start(ap, fmt);
		hm_vfmt(e->msg, sizeof e->msg, fmt, ap);
		va_end(ap);
	}
	return -code;
}

static int code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOENT: return HM_ENOTFOUND;
	case ENOMEM: return HM_ENOMEM;
	case EEXIST: return HM_EEXIST;
	case EACCES:
	case EPERM: return HM_EPERM;
	default: return HM_EIO;
	}
}

int hm_err_errno(struct hm_err *e, int errnum, const char *fmt, ...)
{
	int code = code_of_errno(errnum);
	va_list ap;
	size_t n;

	if (e == NULL)
		return -code;
	e->code = code;
	va_start(ap, fmt);
	n = hm_vfmt(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	if (n < sizeof e->msg)
		hm_fmt(e->msg + n, sizeof e->msg - n, ": %s", hm_errno_text(errnum));
	return -code;
}

int hm_err_wrap(struct hm_err *e, const char *fmt, ...)
{
	char prefix[sizeof e->msg];
	size_t have, n;
	va_list ap;

	if (e == NULL)
		return -HM_EINTERNAL;
	va_start(ap, fmt);
	n = hm_vfmt(prefix, sizeof prefix - 2, fmt, ap);
	va_end(ap);
	n = HM_MIN(n, sizeof prefix - 3);
	prefix[n++] = ':';
	prefix[n++] = ' ';
	have = strnlen(e->msg, sizeof e->msg - 1);
	have = HM_MIN(have, sizeof e->msg - 1 - n);
	memmove(e->msg + n, e->msg, have);
	memcpy(e->msg, prefix, n);
	e->msg[n + have] = '\0';
	return -e->code;
}
