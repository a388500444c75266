#include "agent/claims/claims.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/options/paths.h"
#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "core/fmt.h"
#include "core/num.h"
#include "io/file.h"

struct claims {
	char *folder;
	struct claim **items; /* each owned; a claim is some 2 KiB, so the array moves pointers only */
	size_t count, cap;
	uint64_t max_number;
};

static void free_claim(struct claim *c)
{
	if (c == NULL)
		return;
	claim_fini(c);
	free(c);
}
HM_DEFINE_AUTO(claim, free_claim);

static int claim_path(const struct claims *s, uint64_t number, char out[AGENT_PATH_BYTES], struct hm_err *e)
{
	if (hm_fmt(out, AGENT_PATH_BYTES, "%s/%llu", s->folder, (unsigned long long)number) >= AGENT_PATH_BYTES)
		return hm_err_set(e, HM_EINVAL, "claims: the path is too long: %s", s->folder);
	return 0;
}

static size_t index_of(const struct claims *s, uint64_t number)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i]->number == number)
			return i;
	return s->count;
}

static int read_claim(const char *path, uint64_t number, struct claim *out, struct hm_err *e)
{
	hm_auto_str text = { 0 };

	if (file_read(path, CLAIM_MAX_BYTES, &text, e) < 0)
		return -e->code;
	if (claim_parse(str_text(&text), text.n, out, e) < 0)
		return hm_err_wrap(e, "read %s", path);
	if (out->number == number)
		return 0;
	claim_fini(out);
	return hm_err_set(e, HM_EPROTO, "read %s: it is the claim of another number", path);
}

static int load(struct claims *s, const char *path, uint64_t number, struct hm_err *e)
{
	hm_auto(claim) *c = calloc(1, sizeof *c);
	struct hm_err why;

	s->max_number = HM_MAX(s->max_number, number);
	if (c == NULL || !array_reserve(&s->items, &s->cap, s->count + 1, sizeof(struct claim *)))
		return hm_err_set(e, HM_ENOMEM, "read claims");
	if (read_claim(path, number, c, &why) < 0) {
		memset(c, 0, sizeof *c); /* on failure it needs no claim_fini */
		if (why.code == HM_ENOMEM)
			return hm_err_set(e, HM_ENOMEM, "read claims");
		log_warn("a claim cannot be read; its container is known again at its next start", KV_ERR(&why));
		return 0;
	}
	s->items[s->count++] = HM_STEAL(c);
	return 0;
}

static int visit(struct claims *s, const char *name, struct hm_err *e)
{
	char path[AGENT_PATH_BYTES];
	uint64_t number;

	if (name[0] == '.' || hm_fmt(path, sizeof path, "%s/%s", s->folder, name) >= sizeof path)
		return 0;
	if (strstr(name, ".tmp-") != NULL)
		return 0;
	if (!num_u64_str(name, UINT64_MAX / 2, &number)) {
		log_warn("a file that is no claim lies among the claims", KV("path", path));
		return 0;
	}
	return load(s, path, number, e);
}

int claims_open(const char *folder, struct claims **out, struct hm_err *e)
{
	hm_auto(claims) *s = calloc(1, sizeof *s);
	struct dirent *d;
	DIR *dir;
	int r = 0;

	if (s == NULL || (s->folder = strdup(folder)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "read claims");
	if (file_mkdirs(folder, 0755, e) < 0)
		return hm_err_wrap(e, "read claims");
	dir = opendir(folder);
	if (dir == NULL)
		return hm_err_errno(e, errno, "read claims: %s", folder);
	while (r == 0 && (d = readdir(dir)) != NULL)
		r = visit(s, d->d_name, e);
	closedir(dir);
	if (r < 0)
		return r;
	*out = HM_STEAL(s);
	return 0;
}

void claims_free(struct claims *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->count; i++)
		free_claim(s->items[i]);
	free(s->items);
	free(s->folder);
	free(s);
}

size_t claims_count(const struct claims *s)
{
	return s->count;
}

const struct claim *claims_at(const struct claims *s, size_t i)
{
	return s->items[i];
}

const struct claim *claims_find(const struct claims *s, uint64_t number)
{
	size_t i = index_of(s, number);

	return i < s->count ? s->items[i] : NULL;
}

const struct claim *claims_holder(const struct claims *s, const char *uuid)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct claim *c = s->items[i];

		for (size_t k = 0; c->state != CLAIM_ENDED && k < c->card_count; k++)
			if (strcmp(c->cards[k].uuid, uuid) == 0 || strcmp(c->cards[k].mig, uuid) == 0)
				return c;
	}
	return NULL;
}

uint64_t claims_max_number(const struct claims *s)
{
	return s->max_number;
}

/* A container that restarts changes nothing. */
static bool has_content(const char *path, const struct str *text)
{
	hm_auto_str old = { 0 };
	struct hm_err e;

	return file_read(path, CLAIM_MAX_BYTES, &old, &e) == 0 && old.n == text->n &&
	       memcmp(old.p, text->p, text->n) == 0;
}

static int write_file(const struct claims *s, const struct claim *c, struct hm_err *e)
{
	char path[AGENT_PATH_BYTES];
	hm_auto_str text = { 0 };

	if (claim_path(s, c->number, path, e) < 0)
		return -e->code;
	claim_write(c, &text);
	if (str_failed(&text))
		return hm_err_set(e, HM_ENOMEM, "write claim %llu", (unsigned long long)c->number);
	if (has_content(path, &text))
		return 0;
	return file_replace(path, text.p, text.n, 0644, e);
}

int claims_put(struct claims *s, struct claim *c, struct hm_err *e)
{
	size_t at = index_of(s, c->number);
	struct claim *kept;

	if (!array_reserve(&s->items, &s->cap, s->count + 1, sizeof(struct claim *)))
		return hm_err_set(e, HM_ENOMEM, "write claim %llu", (unsigned long long)c->number);
	kept = at < s->count ? s->items[at] : calloc(1, sizeof *kept);
	if (kept == NULL)
		return hm_err_set(e, HM_ENOMEM, "write claim %llu", (unsigned long long)c->number);
	if (write_file(s, c, e) < 0) {
		if (at == s->count)
			free(kept);
		return -e->code;
	}
	if (at == s->count)
		s->items[s->count++] = kept;
	else
		claim_fini(kept);
	*kept = *c;
	memset(c, 0, sizeof *c);
	s->max_number = HM_MAX(s->max_number, kept->number);
	return 0;
}

int claims_remove(struct claims *s, uint64_t number, struct hm_err *e)
{
	char path[AGENT_PATH_BYTES];
	size_t at = index_of(s, number);

	if (claim_path(s, number, path, e) < 0)
		return -e->code;
	if (unlink(path) < 0 && errno != ENOENT)
		return hm_err_errno(e, errno, "remove %s", path);
	if (at < s->count) {
		free_claim(s->items[at]);
		s->items[at] = s->items[--s->count];
	}
	return 0;
}

int claim_copy(const struct claim *from, struct claim *out, struct hm_err *e)
{
	*out = *from;
	out->devices = NULL;
	if (from->device_count == 0)
		return 0;
	out->devices = calloc(from->device_count, sizeof *out->devices);
	if (out->devices == NULL)
		return hm_err_set(e, HM_ENOMEM, "copy a claim");
	memcpy(out->devices, from->devices, from->device_count * sizeof *out->devices);
	return 0;
}

bool claim_has_device(const struct claim *c, const char *id)
{
	for (size_t i = 0; i < c->device_count; i++)
		if (strcmp(c->devices[i], id) == 0)
			return true;
	return false;
}

/* Ids are unique in a claim, and the kubelet sends each once. */
bool claim_has_set(const struct claim *c, const char *const *ids, size_t count)
{
	if (c->device_count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!claim_has_device(c, ids[i]))
			return false;
	return true;
}
