#include "hami/devices_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/cursor.h"

enum { FIELDS = 4 };

void pod_devices_fini(struct pod_devices *d)
{
	free(d->shares);
	free(d->entries);
	*d = (struct pod_devices) { 0 };
}

/* The piece before the next `stop`, or all that is left; *more says whether there was one. */
static struct piece split(struct piece *rest, char stop, bool *more)
{
	const char *at = rest->n == 0 ? NULL : memchr(rest->p, stop, rest->n);
	struct piece head = { rest->p, at == NULL ? rest->n : (size_t)(at - rest->p) };

	*more = at != NULL;
	rest->p += head.n + (at != NULL);
	rest->n -= head.n + (at != NULL);
	return head;
}

/* Go's ParseInt(text, 10, 32): one sign may stand before the digits. */
static bool read_int32(struct piece s, int32_t *out)
{
	uint64_t magnitude;
	bool minus = s.n > 0 && s.p[0] == '-';

	if (s.n > 0 && (minus || s.p[0] == '+'))
		s = (struct piece) { s.p + 1, s.n - 1 };
	if (!piece_u64(s, (uint64_t)INT32_MAX + minus, &magnitude))
		return false;
	*out = (int32_t)(minus ? -(int64_t)magnitude : (int64_t)magnitude);
	return true;
}

static int read_share(struct piece text, struct device_share *out, struct hm_err *e)
{
	struct piece field[FIELDS], rest = text;
	size_t n = 0;
	bool more = true;

	while (n < FIELDS && more)
		field[n++] = split(&rest, ',', &more);
	if (n < FIELDS)
		return hm_err_set(
			e, HM_EPROTO,
			"\"%.*s\": pod annotation format error, missing fields, do not use nodeName in task spec",
			(int)HM_MIN(text.n, (size_t)128), text.p);
	if (!piece_copy(field[0], out->uuid, sizeof out->uuid) || !piece_copy(field[1], out->type, sizeof out->type))
		return hm_err_set(e, HM_ELIMIT, "\"%.*s\": a UUID or type of 64 bytes or more",
				  (int)HM_MIN(text.n, (size_t)128), text.p);
	if (!read_int32(field[2], &out->memory_mib) || !read_int32(field[3], &out->cores))
		return hm_err_set(e, HM_EPROTO, "\"%.*s\": MiB or percent is no 32-bit number",
				  (int)HM_MIN(text.n, (size_t)128), text.p);
	return 0;
}

static int read_entry(struct piece text, struct pod_devices *d, struct hm_err *e)
{
	struct devices_entry entry = { d->share_count, 0 };
	bool more = true;

	while (more) {
		struct device_share share = { 0 };
		struct piece part = split(&text, ':', &more);
		int r;

		if (part.n == 0 || memchr(part.p, ',', part.n) == NULL)
			continue;
		r = read_share(part, &share, e);
		if (r < 0)
			return r;
		if (!HM_PUSH(d->shares, d->share_count, d->share_cap, share))
			return hm_err_set(e, HM_ENOMEM, "devices of a pod");
		entry.count++;
	}
	if (!HM_PUSH(d->entries, d->entry_count, d->entry_cap, entry))
		return hm_err_set(e, HM_ENOMEM, "devices of a pod");
	return 0;
}

int devices_text_parse(const char *text, struct pod_devices *out, struct hm_err *e)
{
	struct piece rest = { text, text == NULL ? 0 : strnlen(text, DEVICES_TEXT_MAX_BYTES + 1) };
	bool more = true;

	*out = (struct pod_devices) { 0 };
	if (text == NULL)
		return hm_err_set(e, HM_ENOTFOUND, "device request not found");
	if (rest.n > DEVICES_TEXT_MAX_BYTES)
		return hm_err_set(e, HM_ELIMIT, "a device annotation of more than %d bytes", DEVICES_TEXT_MAX_BYTES);
	while (more) {
		int r = read_entry(split(&rest, ';', &more), out, e);

		if (r < 0) {
			pod_devices_fini(out);
			return r;
		}
	}
	return 0;
}

void devices_text_write(const struct pod_devices *d, struct str *out)
{
	for (size_t i = 0; i < d->entry_count; i++) {
		const struct devices_entry *entry = &d->entries[i];

		for (size_t k = 0; k < entry->count; k++) {
			const struct device_share *s = &d->shares[entry->first + k];

			str_addf(out, "%s,%s,%d,%d:", s->uuid, s->type, s->memory_mib, s->cores);
		}
		str_addc(out, ';');
	}
}

size_t pod_devices_filled(const struct pod_devices *d)
{
	size_t filled = 0;

	for (size_t i = 0; i < d->entry_count; i++)
		filled += d->entries[i].count > 0;
	return filled;
}

size_t pod_devices_find(const struct pod_devices *d, size_t k)
{
	for (size_t i = 0; i < d->entry_count; i++) {
		if (d->entries[i].count > 0 && k-- == 0)
			return i;
	}
	return SIZE_MAX;
}

void pod_devices_erase(struct pod_devices *d, size_t entry)
{
	if (entry < d->entry_count)
		d->entries[entry].count = 0;
}
