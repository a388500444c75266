#include "region/limit_file.h"

#include <string.h>

#include "contract/region_layout.h"
#include "core/cursor.h"
#include "core/fmt.h"

enum { VERSION = 1 };
enum { SEEN_PRIORITY = 1, SEEN_POLICY = 2, SEEN_OVERSUBSCRIBE = 4 };

static const char first_word[] = "hami-vgpu-limits ";
static const char *const policy_names[] = {
	[LIMIT_POLICY_DEFAULT] = "default",
	[LIMIT_POLICY_FORCE] = "force",
	[LIMIT_POLICY_DISABLE] = "disable",
};

struct parser {
	struct cur text;
	unsigned line; /* of the line being read, from 1 */
	unsigned seen;
	struct limits *out;
	struct hm_err *e;
};

/* At most as much of a piece as makes a readable message; hostile bytes are the logger's business. */
static int shown(struct piece s)
{
	return s.n > 40 ? 40 : (int)s.n;
}

static int refuse(struct parser *p, const char *what, struct piece s)
{
	return hm_err_set(p->e, HM_EPROTO, "line %u: %s: \"%.*s\"", p->line, what, shown(s), s.p);
}

static bool uuid_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '/' ||
	       c == '.' || c == '_';
}

static bool read_uuid(struct piece s, char *out)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!uuid_char(s.p[i]))
			return false;
	}
	return s.n > 0 && piece_copy(s, out, HM_UUID_BYTES);
}

static int read_card(struct parser *p, struct cur line, struct piece whole)
{
	struct limits *l = p->out;
	struct limit_card card;
	struct piece uuid = cur_until(&line, ' ');
	uint64_t cores;

	cur_word(&line, "memory=");
	card.memory_bytes = cur_u64(&line, ' ', REGION_MAX_BYTES);
	cur_word(&line, "cores=");
	if (line.bad || !piece_u64(cur_rest(&line), 100, &cores))
		return refuse(p, "want gpu=<uuid> memory=<bytes> cores=<percent>", whole);
	if (!read_uuid(uuid, card.uuid))
		return refuse(p, "not a card's uuid", uuid);
	if (card.memory_bytes == 0 || cores == 0)
		return refuse(p, "memory and cores begin at 1", whole);
	card.cores = (unsigned)cores;
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->cards[i].uuid, card.uuid) == 0)
			return refuse(p, "this card stands here twice", uuid);
	}
	if (l->count == HM_MAX_CARDS)
		return refuse(p, "more cards than a container can have", whole);
	l->cards[l->count++] = card;
	return 0;
}

static bool read_policy(struct piece value, enum limit_policy *out)
{
	for (size_t i = 0; i < HM_COUNT(policy_names); i++) {
		if (piece_is(value, policy_names[i])) {
			*out = (enum limit_policy)i;
			return true;
		}
	}
	return false;
}

static int read_option(struct parser *p, struct piece key, struct piece value, struct piece whole)
{
	uint64_t number = 0;
	unsigned bit;
	bool good;

	if (piece_is(key, "priority")) {
		bit = SEEN_PRIORITY;
		good = piece_u64(value, 1, &number);
		p->out->priority = (unsigned)number;
	} else if (piece_is(key, "policy")) {
		bit = SEEN_POLICY;
		good = read_policy(value, &p->out->policy);
	} else if (piece_is(key, "oversubscribe")) {
		bit = SEEN_OVERSUBSCRIBE;
		good = piece_u64(value, 1, &number);
		p->out->oversubscribe = number == 1;
	} else {
		return refuse(p, "unknown key", key);
	}
	if (!good)
		return refuse(p, "not a value that this key takes", whole);
	if ((p->seen & bit) != 0)
		return refuse(p, "this key stands here twice", key);
	p->seen |= bit;
	return 0;
}

static int read_line(struct parser *p, struct piece whole)
{
	struct cur line = cur_of(whole.p, whole.n);
	struct piece key = cur_until(&line, '=');

	if (line.bad)
		return refuse(p, "want key=value or end", whole);
	if (piece_is(key, "gpu"))
		return read_card(p, line, whole);
	return read_option(p, key, cur_rest(&line), whole);
}

static int read_first_line(struct parser *p)
{
	struct cur line;
	struct piece whole;
	uint64_t version;

	p->line = 1;
	if (memchr(p->text.p, '\n', (size_t)(p->text.end - p->text.p)) == NULL)
		return hm_err_set(p->e, HM_EPROTO, "no line \"hami-vgpu-limits 1\"");
	whole = cur_until(&p->text, '\n');
	line = cur_of(whole.p, whole.n);
	cur_word(&line, first_word);
	if (line.bad || !piece_u64(cur_rest(&line), UINT32_MAX, &version))
		return refuse(p, "want \"hami-vgpu-limits 1\"", whole);
	if (version != VERSION)
		return hm_err_set(p->e, HM_EUNSUPPORTED, "version %u; this library reads version %d", (unsigned)version,
				  VERSION);
	return 0;
}

static int parse(struct parser *p)
{
	int r = read_first_line(p);

	if (r < 0)
		return r;
	for (;;) {
		struct piece whole = cur_until(&p->text, '\n');

		p->line++;
		if (p->text.bad)
			return hm_err_set(p->e, HM_EPROTO, "line %u: the last line must be \"end\"; the file is cut",
					  p->line);
		if (piece_is(whole, "end"))
			break;
		r = read_line(p, whole);
		if (r < 0)
			return r;
	}
	if (!cur_at_end(&p->text))
		return hm_err_set(p->e, HM_EPROTO, "line %u: text behind \"end\"", p->line + 1);
	if (p->out->count == 0)
		return hm_err_set(p->e, HM_EPROTO, "no gpu= line");
	return 0;
}

int limits_parse(const char *text, size_t n, struct limits *out, struct hm_err *e)
{
	struct parser p = { .text = cur_of(text, n), .out = out, .e = e };

	memset(out, 0, sizeof *out);
	out->priority = 1;
	if (n > LIMIT_FILE_MAX_BYTES)
		return hm_err_set(e, HM_EPROTO, "more than %d bytes", LIMIT_FILE_MAX_BYTES);
	return parse(&p);
}

size_t limits_write(const struct limits *l, char *out, size_t cap)
{
	size_t n = hm_fmt(out, cap, "%s%d\n", first_word, VERSION);

	for (size_t i = 0; i < l->count && n < cap; i++)
		n += hm_fmt(out + n, cap - n, "gpu=%s memory=%lu cores=%u\n", l->cards[i].uuid,
			    (unsigned long)l->cards[i].memory_bytes, l->cards[i].cores);
	if (n < cap)
		n += hm_fmt(out + n, cap - n, "priority=%u\npolicy=%s\noversubscribe=%d\nend\n", l->priority,
			    policy_names[l->policy], l->oversubscribe ? 1 : 0);
	return n < cap ? n : 0;
}
