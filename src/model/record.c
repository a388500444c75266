#include "model/record.h"

#include <stdint.h>

static int no_form(struct hm_err *e, const struct record_format *f)
{
	return hm_err_set(e, HM_EPROTO, "line 1: not \"%s %u\"", f->magic, f->version);
}

/* "<magic> <version>" */
static int read_first_line(const struct record_format *f, struct cur *c, uint64_t *version, struct hm_err *e)
{
	struct piece line = cur_line(c);
	struct cur words = cur_of(line.p, line.n);

	cur_word(&words, f->magic);
	cur_word(&words, " ");
	if (c->bad || words.bad || !piece_u64(cur_rest(&words), UINT32_MAX, version) || *version == 0)
		return no_form(e, f);
	if (*version > f->version)
		return hm_err_set(e, HM_EUNSUPPORTED,
				  "line 1: %s version %llu was written by another release; this one reads version %u",
				  f->magic, (unsigned long long)*version, f->version);
	return 0;
}

static const struct record_key *find_key(const struct record_format *f, uint64_t version, struct piece name)
{
	for (size_t i = 0; i < f->key_count; i++) {
		if (f->keys[i].since <= version && piece_is(name, f->keys[i].name))
			return &f->keys[i];
	}
	return NULL;
}

static int read_line(const struct record_format *f, uint64_t version, struct piece line, uint32_t *seen, void *into,
		     struct hm_err *e)
{
	struct cur c = cur_of(line.p, line.n);
	struct piece name = cur_until(&c, '=');
	const struct record_key *key;
	uint32_t bit;
	int r;

	if (c.bad)
		return hm_err_set(e, HM_EPROTO, "neither \"key=value\" nor \"end\"");
	key = find_key(f, version, name);
	if (key == NULL)
		return hm_err_set(e, HM_EPROTO, "unknown key \"%.*s\"", (int)HM_MIN(name.n, (size_t)40), name.p);
	bit = 1u << (key - f->keys);
	if (!key->repeats && (*seen & bit) != 0)
		return hm_err_set(e, HM_EPROTO, "%s: stands twice", key->name);
	*seen |= bit;
	r = key->read(cur_rest(&c), into, e);
	return r < 0 ? hm_err_wrap(e, "%s", key->name) : 0;
}

static int check_complete(const struct record_format *f, uint64_t version, uint32_t seen, struct hm_err *e)
{
	for (size_t i = 0; i < f->key_count; i++) {
		if (!f->keys[i].repeats && f->keys[i].since <= version && (seen & 1u << i) == 0)
			return hm_err_set(e, HM_EPROTO, "%s is missing", f->keys[i].name);
	}
	return 0;
}

int record_parse(const struct record_format *format, const char *text, size_t n, void *into, struct hm_err *e)
{
	struct cur c = cur_of(text, n);
	uint64_t version = 0;
	uint32_t seen = 0;
	int r = read_first_line(format, &c, &version, e);

	if (r < 0)
		return r;
	for (size_t number = 2;; number++) {
		struct piece line = cur_line(&c);

		if (c.bad)
			return hm_err_set(e, HM_EPROTO, "line %zu: \"end\" is missing, the file is cut", number);
		if (piece_is(line, "end"))
			break;
		r = read_line(format, version, line, &seen, into, e);
		if (r < 0)
			return hm_err_wrap(e, "line %zu", number);
	}
	if (!cur_at_end(&c))
		return hm_err_set(e, HM_EPROTO, "text behind \"end\"");
	return check_complete(format, version, seen, e);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of the escape at *c, behind its backslash; -1 for none. */
static int read_escape(struct cur *c)
{
	char kind = c->p < c->end ? *c->p++ : '\0';

	if (kind == 'n')
		return '\n';
	if (kind == 't')
		return '\t';
	if (kind == '"' || kind == '\\')
		return kind;
	if (kind == 'x' && c->end - c->p >= 2) {
		int high = hex_digit(c->p[0]), low = hex_digit(c->p[1]);

		c->p += 2;
		return high < 0 || low < 0 ? -1 : high * 16 + low;
	}
	return -1;
}

bool record_unescape(struct piece s, char *out, size_t cap)
{
	struct cur c = cur_of(s.p, s.n);
	size_t n = 0;

	while (c.p < c.end) {
		int byte = (unsigned char)*c.p++;

		/* What the writer escapes never stands bare. */
		if (byte == '"' || byte < 0x20 || byte >= 0x7f)
			break;
		if (byte == '\\')
			byte = read_escape(&c);
		if (byte <= 0 || n + 1 >= cap)
			break;
		out[n++] = (char)byte;
		if (c.p == c.end) {
			out[n] = '\0';
			return true;
		}
	}
	if (cap > 0)
		out[0] = '\0';
	return s.n == 0 && cap > 0;
}

bool record_word(struct piece s, char *out, size_t cap)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\') {
			s.n = 0;
			break;
		}
	}
	return piece_copy(s, out, cap) && s.n > 0;
}
