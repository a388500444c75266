#include "agent/cards/card_memory.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cursor.h"
#include "core/fmt.h"
#include "io/file.h"

static const char head[] = "hami-vgpu-health 1";

void card_memory_mark(const char *proc, const char *sys, char out[CARD_MARK_BYTES])
{
	hm_auto_str boot = { 0 };
	char path[PATH_MAX];
	struct hm_err e;
	struct stat st;
	size_t n;

	hm_fmt(path, sizeof path, "%s/sys/kernel/random/boot_id", proc);
	if (file_read(path, 64, &boot, &e) < 0)
		str_clear(&boot);
	n = strcspn(str_text(&boot), "\n");
	hm_fmt(path, sizeof path, "%s/module/nvidia", sys);
	/* The kernel numbers these folders as it makes them: a module that is loaded again has another. */
	if (stat(path, &st) == 0)
		hm_fmt(out, CARD_MARK_BYTES, "%.*s %llu", n > 0 ? (int)n : 1, n > 0 ? boot.p : "-",
		       (unsigned long long)st.st_ino);
	else
		hm_fmt(out, CARD_MARK_BYTES, "%.*s -", n > 0 ? (int)n : 1, n > 0 ? boot.p : "-");
}

static void add_card(struct str *out, const struct card_state *s)
{
	str_addf(out, "sick=%s reset=%d xid=%u since=%llu ecc=", s->uuid, s->needs_reset, s->xid,
		 (unsigned long long)s->since_wall_ms);
	if (s->ecc_known)
		str_addf(out, "%llu", (unsigned long long)s->uncorrected);
	else
		str_addc(out, '-');
	str_add(out, " why=");
	for (const char *p = s->why; *p != '\0'; p++)
		str_addc(out, *p == '\n' ? ' ' : *p);
	str_addc(out, '\n');
}

void card_memory_text(const struct card_health *h, const char *mark, struct str *out)
{
	str_addf(out, "%s\nmark=%s\n", head, mark);
	for (size_t i = 0; i < card_health_count(h); i++)
		if (card_health_at(h, i)->sick)
			add_card(out, card_health_at(h, i));
	str_add(out, "end\n");
}

static bool read_card(struct piece line, struct card_state *s)
{
	struct cur c = cur_of(line.p, line.n);
	struct piece uuid, ecc;
	bool good;

	*s = (struct card_state) { .sick = true };
	cur_word(&c, "sick=");
	uuid = cur_until(&c, ' ');
	cur_word(&c, "reset=");
	s->needs_reset = cur_u64(&c, ' ', 1) != 0;
	cur_word(&c, "xid=");
	s->xid = (unsigned)cur_u64(&c, ' ', UINT32_MAX);
	cur_word(&c, "since=");
	s->since_wall_ms = cur_u64(&c, ' ', INT64_MAX);
	cur_word(&c, "ecc=");
	ecc = cur_until(&c, ' ');
	cur_word(&c, "why=");
	good = !c.bad && uuid.n > 0 && piece_copy(uuid, s->uuid, sizeof s->uuid) &&
	       piece_copy(cur_rest(&c), s->why, sizeof s->why);
	s->ecc_known = good && !piece_is(ecc, "-");
	return good && (!s->ecc_known || piece_u64(ecc, UINT64_MAX, &s->uncorrected));
}

int card_memory_parse(const char *text, size_t n, const char *mark, struct card_health *h, struct hm_err *e)
{
	struct card_state cards[HM_MAX_CARDS];
	struct cur c = cur_of(text, n);
	struct piece line = cur_line(&c);
	size_t count = 0;
	bool same;

	if (c.bad || !piece_is(line, head))
		return hm_err_set(e, HM_EPROTO, "it does not begin with \"%s\"", head);
	line = cur_line(&c);
	if (c.bad || !piece_starts(line, "mark="))
		return hm_err_set(e, HM_EPROTO, "line 2: no mark");
	same = piece_is((struct piece) { line.p + strlen("mark="), line.n - strlen("mark=") }, mark);
	for (line = cur_line(&c); !c.bad && !piece_is(line, "end"); line = cur_line(&c)) {
		if (count == HM_MAX_CARDS || !read_card(line, &cards[count]))
			return hm_err_set(e, HM_EPROTO, "line %zu", count + 3);
		count++;
	}
	if (c.bad)
		return hm_err_set(e, HM_EPROTO, "it is cut off");
	for (size_t i = 0; same && i < count; i++)
		card_health_recall(h, &cards[i]);
	return 0;
}
