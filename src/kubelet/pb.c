#include "kubelet/pb.h"

#include <stdlib.h>
#include <string.h>

static void *pb_alloc(void *unused, size_t n)
{
	(void)unused;
	return malloc(n);
}

static void pb_release(void *unused, void *p)
{
	(void)unused;
	free(p);
}

static ProtobufCAllocator allocator = { pb_alloc, pb_release, NULL };

/* protobuf-c answers NULL both for bad bytes and for a failed allocation; the allocator knows which it was. */
struct watch {
	ProtobufCAllocator a;
	bool short_of_memory;
};

static void *watched_alloc(void *watch, size_t n)
{
	void *p = malloc(n);

	if (p == NULL)
		((struct watch *)watch)->short_of_memory = true;
	return p;
}

void *pb_unpack(const ProtobufCMessageDescriptor *type, const char *what, const void *bytes, size_t n, struct hm_err *e)
{
	struct watch w = { .a = { watched_alloc, pb_release, &w }, .short_of_memory = false };
	void *m = protobuf_c_message_unpack(type, &w.a, n, bytes);

	if (m != NULL)
		return m;
	if (w.short_of_memory)
		hm_err_set(e, HM_ENOMEM, "%s of %zu bytes", what, n);
	else
		hm_err_set(e, HM_EPROTO, "the %zu bytes are no %s", n, what);
	return NULL;
}

void pb_free(void *message)
{
	if (message != NULL)
		protobuf_c_message_free_unpacked(message, &allocator);
}

/* A ProtobufCBuffer that appends to a str. */
struct str_sink {
	ProtobufCBuffer base;
	struct str *out;
};

static void sink_append(ProtobufCBuffer *b, size_t n, const uint8_t *bytes)
{
	struct str_sink *s = (struct str_sink *)(void *)b;

	str_add_n(s->out, bytes, n);
}

void pb_pack(struct str *out, const void *message)
{
	struct str_sink s = { { sink_append }, out };

	protobuf_c_message_pack_to_buffer(message, &s.base);
}

static void add_field_head(struct str *out, unsigned number, size_t n)
{
	str_addc(out, (char)(number << 3 | 2)); /* wire type 2: a length follows */
	for (; n >= 0x80; n >>= 7)
		str_addc(out, (char)((n & 0x7f) | 0x80));
	str_addc(out, (char)n);
}

void pb_pack_field(struct str *out, unsigned number, const void *message)
{
	add_field_head(out, number, protobuf_c_message_get_packed_size(message));
	pb_pack(out, message);
}

void pb_add_field(struct str *out, unsigned number, const struct str *packed)
{
	add_field_head(out, number, packed->n);
	str_add_n(out, str_text(packed), packed->n);
}

bool pb_name_ok(const char *s)
{
	size_t n = 0;

	for (; s[n] != '\0'; n++) {
		if (n == PB_MAX_NAME_BYTES || s[n] <= ' ' || s[n] > '~')
			return false;
	}
	return n > 0;
}

int pb_check_ids(const char *what, char *const *ids, size_t count, struct hm_err *e)
{
	if (count > PB_MAX_IDS)
		return hm_err_set(e, HM_ELIMIT, "%s has %zu ids, at most %d are taken", what, count, PB_MAX_IDS);
	for (size_t i = 0; i < count; i++) {
		if (!pb_name_ok(ids[i]))
			return hm_err_set(e, HM_EINVAL, "%s: id %zu is not 1 to %d printable characters", what, i,
					  PB_MAX_NAME_BYTES);
	}
	return 0;
}
