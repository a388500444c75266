#include "io/json_scan.h"

#include <stdint.h>
#include <string.h>

#include "core/macros.h"

struct json_scan json_scan_of(char *text, size_t n)
{
	return (struct json_scan) { .start = text, .at = text, .end = text + n };
}

/* ---- failures */

static bool fail(struct json_scan *s, const char *why)
{
	if (s->bad == NULL)
		s->bad = why;
	return false;
}

static bool fail_cut(struct json_scan *s)
{
	if (s->bad == NULL)
		s->cut = true;
	return fail(s, "the text ends here");
}

static void skip_space(struct json_scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
		s->at++;
}

/* The next byte behind white space; 0 at the end, or where something was bad. */
static char next(struct json_scan *s)
{
	if (s->bad != NULL)
		return '\0';
	skip_space(s);
	return s->at < s->end ? *s->at : '\0';
}

static bool take(struct json_scan *s, char c, const char *why)
{
	if (next(s) == c && s->at < s->end) {
		s->at++;
		return true;
	}
	return s->at == s->end ? fail_cut(s) : fail(s, why);
}

enum json_kind json_scan_kind(struct json_scan *s)
{
	switch (next(s)) {
	case '{': return JSON_OBJECT;
	case '[': return JSON_ARRAY;
	case '"': return JSON_STRING;
	case 't':
	case 'f': return JSON_BOOL;
	case 'n': return JSON_NULL;
	case '-':
	case '0' ... '9': return JSON_NUMBER;
	default: return JSON_NONE;
	}
}

const char *json_kind_name(enum json_kind k)
{
	static const char *const names[] = { "nothing", "object", "array", "string", "number", "bool", "null" };

	return names[k];
}

/* ---- single values */

static bool skip_literal(struct json_scan *s, const char *word)
{
	size_t n = strlen(word), left = (size_t)(s->end - s->at);

	if (strncmp(s->at, word, HM_MIN(n, left)) != 0)
		return fail(s, "no value begins like this");
	if (left < n) {
		s->at = s->end;
		return fail_cut(s);
	}
	s->at += n;
	return true;
}

static bool skip_digits(struct json_scan *s)
{
	char *from = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	if (s->at > from)
		return true;
	return s->at == s->end ? fail_cut(s) : fail(s, "a digit is missing");
}

static bool skip_number(struct json_scan *s)
{
	s->at += *s->at == '-';
	if (s->at < s->end && *s->at == '0')
		s->at++;
	else if (!skip_digits(s))
		return false;
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!skip_digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		return skip_digits(s);
	}
	return true;
}

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind the backslash. */
static bool skip_escape(struct json_scan *s)
{
	if (s->at == s->end)
		return fail_cut(s);
	if (*s->at != 'u') {
		if (*s->at == '\0' || strchr("\"\\/bfnrt", *s->at) == NULL)
			return fail(s, "no such escape");
		s->at++;
		return true;
	}
	s->at++;
	for (int i = 0; i < 4; i++, s->at++) {
		if (s->at == s->end)
			return fail_cut(s);
		if (hex_of(*s->at) < 0)
			return fail(s, "\\u wants four hexadecimal digits");
	}
	return true;
}

/* At the opening quote; true behind the closing one. */
static bool skip_string(struct json_scan *s, bool *escapes)
{
	*escapes = false;
	for (s->at++; s->at < s->end;) {
		unsigned char c = (unsigned char)*s->at;

		if (c < 0x20)
			return fail(s, "a control character in a text");
		s->at++;
		if (c == '"')
			return true;
		if (c == '\\') {
			*escapes = true;
			if (!skip_escape(s))
				return false;
		}
	}
	return fail_cut(s);
}

static unsigned hex4(const char *p)
{
	return (unsigned)(hex_of(p[0]) << 12 | hex_of(p[1]) << 8 | hex_of(p[2]) << 4 | hex_of(p[3]));
}

static char *put_char(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* p is behind "\u", checked; the character's code, and *used its bytes behind the first four digits. */
static uint32_t unicode(const char *p, const char *end, size_t *used)
{
	const uint32_t instead = 0xfffd;
	uint32_t c = hex4(p);

	*used = 4;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 10 && p[4] == '\\' && p[5] == 'u') {
		uint32_t low = hex4(p + 6);

		if (low >= 0xdc00 && low < 0xe000) {
			*used = 10;
			return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	return (c >= 0xd800 && c < 0xe000) || c == 0 ? instead : c;
}

/* No text grows by it: "\u" and four digits are six bytes, of which at most four remain. */
static char *unescape(char *text, char *end)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char *out = text;

	for (char *p = text; p < end;) {
		if (*p != '\\') {
			*out++ = *p++;
		} else if (p[1] == 'u') {
			size_t used;
			uint32_t c = unicode(p + 2, end, &used);

			out = put_char(out, c);
			p += 2 + used;
		} else {
			*out++ = to[strchr(from, p[1]) - from];
			p += 2;
		}
	}
	return out;
}

static char *take_string(struct json_scan *s)
{
	char *text = s->at + 1, *end;
	bool escapes;

	if (!skip_string(s, &escapes))
		return NULL;
	end = s->at - 1;
	if (escapes)
		end = unescape(text, end);
	*end = '\0';
	return text;
}

char *json_scan_text(struct json_scan *s)
{
	if (next(s) == '"')
		return take_string(s);
	if (s->bad == NULL && s->at == s->end)
		fail_cut(s);
	else
		fail(s, "a text is wanted here");
	return NULL;
}

/* ---- containers */

static bool open_container(struct json_scan *s, char c, const char *why)
{
	if (!take(s, c, why))
		return false;
	if (s->depth == JSON_SCAN_MAX_DEPTH)
		return fail(s, "nested too deeply");
	s->depth++;
	s->first = true;
	return true;
}

bool json_scan_object(struct json_scan *s)
{
	return open_container(s, '{', "an object is wanted here");
}

bool json_scan_array(struct json_scan *s)
{
	return open_container(s, '[', "an array is wanted here");
}

static bool more(struct json_scan *s, char close)
{
	if (next(s) == close && s->at < s->end) {
		s->at++;
		s->depth--;
		s->first = false;
		return false;
	}
	if (!s->first && !take(s, ',', "a comma is missing"))
		return false;
	s->first = false;
	if (next(s) != '\0')
		return true;
	return s->at == s->end ? fail_cut(s) : fail(s, "no value begins like this");
}

bool json_scan_member(struct json_scan *s, char **key)
{
	if (!more(s, '}'))
		return false;
	if (*s->at != '"')
		return fail(s, "a key is wanted here");
	*key = take_string(s);
	return *key != NULL && take(s, ':', "a colon is missing");
}

bool json_scan_item(struct json_scan *s)
{
	return more(s, ']');
}

static bool skip_scalar(struct json_scan *s)
{
	bool escapes;

	switch (json_scan_kind(s)) {
	case JSON_STRING: return skip_string(s, &escapes);
	case JSON_NUMBER: return skip_number(s);
	case JSON_BOOL: return skip_literal(s, *s->at == 't' ? "true" : "false");
	case JSON_NULL: return skip_literal(s, "null");
	default: return s->at == s->end ? fail_cut(s) : fail(s, "no value begins like this");
	}
}

/* The next member of the container that is open, its key passed over. */
static bool skip_to_value(struct json_scan *s, bool object)
{
	bool escapes;

	if (!more(s, object ? '}' : ']'))
		return false;
	if (!object)
		return true;
	if (*s->at != '"')
		return fail(s, "a key is wanted here");
	return skip_string(s, &escapes) && take(s, ':', "a colon is missing");
}

/* Whether each open container, from depth 0 on, is an object. */
struct nest {
	uint64_t objects[JSON_SCAN_MAX_DEPTH / 64 + 1];
};

static bool nest_is_object(const struct nest *n, unsigned depth)
{
	return n->objects[depth / 64] >> depth % 64 & 1;
}

static void nest_set(struct nest *n, unsigned depth, bool object)
{
	uint64_t bit = (uint64_t)1 << depth % 64;

	n->objects[depth / 64] = object ? n->objects[depth / 64] | bit : n->objects[depth / 64] & ~bit;
}

struct piece json_scan_skip(struct json_scan *s)
{
	const unsigned base = s->depth;
	const char *from;
	struct nest nest;

	next(s);
	from = s->at;
	do {
		enum json_kind k = json_scan_kind(s);

		if (k == JSON_OBJECT || k == JSON_ARRAY) {
			if (k == JSON_OBJECT ? json_scan_object(s) : json_scan_array(s))
				nest_set(&nest, s->depth, k == JSON_OBJECT);
		} else {
			skip_scalar(s);
		}
		/* To the next value, closing what ends before it. */
		while (s->bad == NULL && s->depth > base && !skip_to_value(s, nest_is_object(&nest, s->depth)))
			;
	} while (s->bad == NULL && s->depth > base);
	return s->bad == NULL ? (struct piece) { from, (size_t)(s->at - from) } : (struct piece) { "", 0 };
}

int json_scan_finish(struct json_scan *s, struct hm_err *e)
{
	if (next(s) == '\0' && s->bad == NULL && s->at == s->end && s->depth == 0)
		return 0;
	if (s->cut) {
		s->at = s->start;
		skip_space(s);
		return hm_err_set(e, HM_EPROTO, s->at == s->end ? "EOF" : "unexpected EOF");
	}
	return hm_err_set(e, HM_EPROTO, "JSON: byte %zu: %s", (size_t)(s->at - s->start),
			  s->bad != NULL ? s->bad : "something stands behind the value");
}
