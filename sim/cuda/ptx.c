#include "sim/cuda/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/num.h"

/* The text is read as words: runs of [A-Za-z0-9_.$%], or single other characters; blanks and comments between. */
struct reader {
	const char *p, *end;
	const char *word;
	size_t n;
};

static bool in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
	       c == '$' || c == '%';
}

static const char *behind(const struct reader *r, const char *from, const char *what)
{
	const char *at = memmem(from, (size_t)(r->end - from), what, strlen(what));

	return at != NULL ? at + strlen(what) : r->end;
}

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end) {
		size_t left = (size_t)(r->end - r->p);

		if (left >= 2 && memcmp(r->p, "//", 2) == 0)
			r->p = behind(r, r->p, "\n");
		else if (left >= 2 && memcmp(r->p, "/*", 2) == 0)
			r->p = behind(r, r->p + 2, "*/");
		else if (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
			r->p++;
		else
			break;
	}
}

/* False at the end of the text. */
static bool next(struct reader *r)
{
	skip_blanks(r);
	r->word = r->p;
	while (r->p < r->end && in_word(*r->p))
		r->p++;
	if (r->p == r->word && r->p < r->end)
		r->p++;
	r->n = (size_t)(r->p - r->word);
	return r->n > 0;
}

static bool is(const struct reader *r, const char *word)
{
	return r->n == strlen(word) && memcmp(r->word, word, r->n) == 0;
}

static unsigned type_bytes(const struct reader *r)
{
	static const struct {
		char type[5];
		unsigned bytes;
	} types[] = { { ".u8", 1 },  { ".s8", 1 },  { ".b8", 1 },  { ".u16", 2 }, { ".s16", 2 },
		      { ".b16", 2 }, { ".f16", 2 }, { ".u32", 4 }, { ".s32", 4 }, { ".b32", 4 },
		      { ".f32", 4 }, { ".u64", 8 }, { ".s64", 8 }, { ".b64", 8 }, { ".f64", 8 } };

	for (size_t i = 0; i < HM_COUNT(types); i++)
		if (is(r, types[i].type))
			return types[i].bytes;
	return 0;
}

/* One parameter up to its ',' or ')': .param .u64 name, or .param .align 8 .b8 name[16]. */
static bool read_param(struct reader *r, struct ptx_entry *e)
{
	unsigned bytes = 0;
	uint64_t count = 1;

	while (!is(r, ",") && !is(r, ")")) {
		if (type_bytes(r) > 0)
			bytes = type_bytes(r);
		if (is(r, "[") && (!next(r) || !num_u64(r->word, r->n, 4096, &count)))
			return false;
		if (!next(r))
			return false;
	}
	if (bytes == 0 || e->params == PTX_PARAMS)
		return false;
	e->param_bytes[e->params++] = bytes * (unsigned)count;
	return true;
}

/* Behind ".entry": name ( params ). */
static bool read_entry(struct reader *r, struct ptx_entry *e)
{
	memset(e, 0, sizeof *e);
	if (!next(r) || r->n >= sizeof e->name || !in_word(r->word[0]))
		return false;
	memcpy(e->name, r->word, r->n);
	if (!next(r))
		return false;
	if (!is(r, "("))
		return is(r, "{") || is(r, ";") || r->word[0] == '.'; /* no parameters */
	while (next(r) && !is(r, ")"))
		if (!is(r, ",") && !read_param(r, e))
			return false;
		else if (is(r, ")"))
			break;
	return is(r, ")");
}

/* Behind ".global": attributes, type, name, perhaps [count]; what initialises it is skipped by who reads on. */
static bool read_variable(struct reader *r, struct ptx *p)
{
	struct ptx_variable *v = &p->variables[p->variable_count];
	uint64_t bytes = 0, count = 1, align = 0;

	if (p->variable_count == PTX_VARIABLES)
		return false;
	while (next(r) && r->word[0] == '.')
		if (is(r, ".align")) {
			if (!next(r) || !num_u64(r->word, r->n, 4096, &align))
				return false;
		} else if (is(r, ".v2") || is(r, ".v4")) {
			count = (uint64_t)(r->word[2] - '0');
		} else if (type_bytes(r) > 0) {
			bytes = type_bytes(r);
		}
	if (bytes == 0 || r->n == 0 || r->n >= sizeof v->name || !in_word(r->word[0]))
		return false;
	memset(v->name, 0, sizeof v->name);
	memcpy(v->name, r->word, r->n);
	v->bytes = bytes * count;
	if (!next(r))
		return false;
	if (is(r, "[")) {
		if (!next(r) || !num_u64(r->word, r->n, PTX_VARIABLE_BYTES / 32, &count))
			return false;
		v->bytes *= count;
	}
	v->offset = p->variable_bytes;
	p->variable_bytes += (v->bytes + 255) / 256 * 256;
	p->variable_count++;
	return true;
}

/* ".target sm_75", perhaps "sm_90a" or with options behind. */
static bool read_target(struct reader *r, unsigned *target)
{
	if (!next(r) || r->n < 4 || memcmp(r->word, "sm_", 3) != 0)
		return false;
	size_t digits = 0;
	uint64_t number;

	while (3 + digits < r->n && r->word[3 + digits] >= '0' && r->word[3 + digits] <= '9')
		digits++;
	if (!num_u64(r->word + 3, digits, 999, &number))
		return false;
	*target = (unsigned)number;
	return true;
}

enum ptx_result ptx_read(const char *text, size_t n, struct ptx *out)
{
	struct reader r = { .p = text, .end = text + n };

	*out = (struct ptx) { 0 };
	if (!next(&r) || !is(&r, ".version"))
		return PTX_BAD;
	out->text_bytes = n;
	out->entries = calloc(PTX_ENTRIES, sizeof *out->entries);
	out->variables = calloc(PTX_VARIABLES, sizeof *out->variables);
	if (out->entries == NULL || out->variables == NULL) {
		ptx_clear(out);
		return PTX_NO_MEMORY;
	}
	bool ok = true, elsewhere = false; /* .extern: another module's */

	while (ok && next(&r)) {
		if (is(&r, ".target"))
			ok = read_target(&r, &out->target);
		else if (is(&r, ".entry"))
			ok = out->count < PTX_ENTRIES && read_entry(&r, &out->entries[out->count++]);
		else if (is(&r, ".global") && !elsewhere)
			ok = read_variable(&r, out);
		elsewhere = is(&r, ".extern");
	}
	if (ok && out->target > 0)
		return PTX_OK;
	ptx_clear(out);
	return PTX_BAD;
}

void ptx_clear(struct ptx *p)
{
	free(p->entries);
	free(p->variables);
	*p = (struct ptx) { 0 };
}
