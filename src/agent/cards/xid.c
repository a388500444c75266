#include "agent/cards/xid.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/cursor.h"
#include "core/macros.h"

struct row {
	unsigned number;
	enum xid_class class;
	const char *action, *words;
};

static const struct row rows[] = {
#define X(number, class, action, words) { number, class, action, words },
#include "agent/cards/xids.def"
#undef X
};

static const struct row *find(unsigned xid)
{
	size_t low = 0, high = HM_COUNT(rows);

	while (low < high) {
		size_t at = (low + high) / 2;

		if (rows[at].number == xid)
			return &rows[at];
		if (rows[at].number < xid)
			low = at + 1;
		else
			high = at;
	}
	return NULL;
}

enum xid_class xid_class(unsigned xid)
{
	const struct row *r = find(xid);

	return r != NULL ? r->class : XID_CARD;
}

const char *xid_words(unsigned xid)
{
	const struct row *r = find(xid);

	return r != NULL ? r->words : "not in NVIDIA's catalogue";
}

const char *xid_action(unsigned xid)
{
	const struct row *r = find(xid);

	return r != NULL ? r->action : "none";
}

/* ---- policy */

static struct piece trim(struct piece s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

static bool is_word(struct piece s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static bool has(const uint64_t bits[16], unsigned xid)
{
	return xid < 1024 && (bits[xid / 64] >> xid % 64 & 1) != 0;
}

static void not_read(struct str *unread, struct piece s)
{
	if (unread == NULL)
		return;
	str_add(unread, unread->n > 0 ? "," : "");
	str_add_n(unread, s.p, s.n);
}

/* What each element of a list does; false: it is none. */
typedef bool element(void *to, struct piece s);

static void read_list(const char *text, element *take, void *to, struct str *unread)
{
	while (text != NULL) {
		const char *end = strchr(text, ',');
		struct piece s = trim((struct piece) { text, end != NULL ? (size_t)(end - text) : strlen(text) });

		if (s.n > 0 && !take(to, s))
			not_read(unread, s);
		text = end != NULL ? end + 1 : NULL;
	}
}

struct xid_list {
	bool all, any;
	uint64_t *bits;
};

static bool take_xid(void *to, struct piece s)
{
	struct xid_list *list = to;
	uint64_t xid;

	if (is_word(s, "all") || is_word(s, "xids")) {
		list->all = list->any = true;
		return true;
	}
	if (!piece_u64(s, UINT32_MAX, &xid))
		return false;
	/* HAMi's plugin keeps "all" as number 0, and so takes a 0 for it. */
	list->all |= xid == 0;
	list->any = true;
	if (xid < 1024)
		list->bits[xid / 64] |= UINT64_C(1) << xid % 64;
	return true;
}

static bool take_check(void *to, struct piece s)
{
	struct health_policy *p = to;
	bool all = is_word(s, "all"), xid = all || is_word(s, "xid"), ecc = all || is_word(s, "ecc"),
	     lost = all || is_word(s, "lost");

	p->any |= xid;
	p->ecc |= ecc;
	p->lost |= lost;
	return xid || ecc || lost || is_word(s, "none");
}

void health_policy_init(struct health_policy *p, const char *checks, const char *disable, const char *enable,
			struct str *unread)
{
	struct xid_list off = { .bits = p->off }, on = { .bits = p->on };
	bool xids;

	*p = (struct health_policy) { .any = false };
	read_list(checks != NULL ? checks : "all", take_check, p, unread);
	xids = p->any;
	read_list(disable, take_xid, &off, unread);
	read_list(enable, take_xid, &on, unread);
	p->all_on = on.all;
	p->all_off = off.all || !xids;
	p->ecc &= !off.all || on.all;
	p->lost &= !off.all || on.all;
	p->any = !p->all_off || on.any || p->ecc || p->lost;
}

enum xid_class health_policy_class(const struct health_policy *p, unsigned xid)
{
	enum xid_class class = xid_class(xid);

	if (p->all_on || has(p->on, xid))
		return class > XID_CARD ? class : XID_CARD;
	return p->all_off || has(p->off, xid) ? XID_NOTE : class;
}
