#include "core/fmt.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sink {
	char *out;
	size_t cap;
	size_t len; /* of the whole text, also the part that did not fit */
};

struct spec {
	bool left, zero;
	int width, precision; /* precision -1: none given */
	enum { INT, LONG, LLONG, SIZE } size;
};

static void put(struct sink *s, char c)
{
	if (s->len + 1 < s->cap)
		s->out[s->len] = c;
	s->len++;
}

static void pad(struct sink *s, char c, int n)
{
	for (; n > 0; n--)
		put(s, c);
}

static void put_padded(struct sink *s, const struct spec *sp, const char *text, size_t n)
{
	int fill = sp->width > 0 && n < (size_t)sp->width ? sp->width - (int)n : 0;

	if (!sp->left)
		pad(s, ' ', fill);
	for (size_t i = 0; i < n; i++)
		put(s, text[i]);
	if (sp->left)
		pad(s, ' ', fill);
}

static void put_number(struct sink *s, struct spec *sp, uint64_t v, bool negative, unsigned base)
{
	char buf[24];
	size_t at = sizeof buf;

	do
		buf[--at] = "0123456789abcdef"[v % base];
	while ((v /= base) != 0);
	if (sp->zero && !sp->left) {
		int digits = (int)(sizeof buf - at) + (negative ? 1 : 0);
		if (negative)
			put(s, '-');
		pad(s, '0', sp->width - digits);
		sp->width = 0;
	} else if (negative) {
		buf[--at] = '-';
	}
	put_padded(s, sp, buf + at, sizeof buf - at);
}

static int read_count(const char **f, va_list *ap)
{
	int n = 0;

	if (**f == '*') {
		(*f)++;
		return va_arg(*ap, int);
	}
	for (; **f >= '0' && **f <= '9'; (*f)++)
		n = n > 10000 ? n : n * 10 + (**f - '0');
	return n;
}

static struct spec read_spec(const char **f, va_list *ap)
{
	struct spec sp = { .precision = -1 };

	for (;; (*f)++) {
		if (**f == '-')
			sp.left = true;
		else if (**f == '0')
			sp.zero = true;
		else
			break;
	}
	sp.width = read_count(f, ap);
	if (sp.width < 0) {
		sp.left = true;
		sp.width = sp.width == INT_MIN ? 0 : -sp.width;
	}
	if (**f == '.') {
		(*f)++;
		sp.precision = read_count(f, ap);
	}
	if (**f == 'z') {
		sp.size = SIZE;
		(*f)++;
	} else if (**f == 'l') {
		(*f)++;
		sp.size = LONG;
		if (**f == 'l') {
			(*f)++;
			sp.size = LLONG;
		}
	}
	return sp;
}

static int64_t take_signed(const struct spec *sp, va_list *ap)
{
	switch (sp->size) {
	case LONG: return va_arg(*ap, long);
	case LLONG: return va_arg(*ap, long long);
	case SIZE: return va_arg(*ap, ptrdiff_t);
	default: return va_arg(*ap, int);
	}
}

static uint64_t take_unsigned(const struct spec *sp, va_list *ap)
{
	switch (sp->size) {
	case LONG: return va_arg(*ap, unsigned long);
	case LLONG: return va_arg(*ap, unsigned long long);
	case SIZE: return va_arg(*ap, size_t);
	default: return va_arg(*ap, unsigned);
	}
}

static void put_string(struct sink *s, const struct spec *sp, const char *text)
{
	if (text == NULL)
		text = "(null)";
	put_padded(s, sp, text, sp->precision >= 0 ? strnlen(text, (size_t)sp->precision) : strlen(text));
}

/* One conversion, `f` behind its '%'. Returns where the format goes on. */
static const char *convert(struct sink *s, const char *f, va_list *ap)
{
	const char *start = f;
	struct spec sp = read_spec(&f, ap);
	int64_t v;
	char c;

	switch (*f) {
	case '%': put(s, '%'); break;
	case 'c':
		c = (char)va_arg(*ap, int);
		put_padded(s, &sp, &c, 1);
		break;
	case 's': put_string(s, &sp, va_arg(*ap, const char *)); break;
	case 'd':
	case 'i':
		v = take_signed(&sp, ap);
		put_number(s, &sp, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0, 10);
		break;
	case 'u': put_number(s, &sp, take_unsigned(&sp, ap), false, 10); break;
	case 'x': put_number(s, &sp, take_unsigned(&sp, ap), false, 16); break;
	case 'p':
		put(s, '0');
		put(s, 'x');
		put_number(s, &sp, (uintptr_t)va_arg(*ap, void *), false, 16);
		break;
	default: put(s, '%'); return start;
	}
	return f + 1;
}

size_t hm_vfmt(char *out, size_t cap, const char *fmt, va_list ap)
{
	struct sink s = { out, cap, 0 };
	va_list args;

	va_copy(args, ap);
	while (*fmt != '\0') {
		if (*fmt == '%')
			fmt = convert(&s, fmt + 1, &args);
		else
			put(&s, *fmt++);
	}
	va_end(args);
	if (cap > 0)
		out[HM_MIN(s.len, cap - 1)] = '\0';
	return s.len;
}

size_t hm_fmt(char *out, size_t cap, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = hm_vfmt(out, cap, fmt, ap);
	va_end(ap);
	return n;
}
