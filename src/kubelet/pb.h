/* What every use of a generated message needs: our allocator (so that a failing allocation is an error, and tests can
 * make it fail), packing into a str, and the checks on text that came from a peer. */
#ifndef HM_KUBELET_PB_H
#define HM_KUBELET_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"
#include "core/err.h"

enum {
	PB_MAX_NAME_BYTES = 253,     /* of a device id, resource, pod, container */
	PB_MAX_IDS = 65536,          /* device ids of one list: 4 MiB hold no more devices */
	PB_MAX_CONTAINERS = 64,      /* containers of one request; the kubelet sends one */
	PB_MAX_ENTRIES = 1024 * 1024 /* pods or checkpoint entries of a node */
};

/* The message, freed with pb_free; NULL where the bytes are no such message or memory is short: *e says which. `what`
 * names it: "AllocateRequest". Unknown fields are kept and ignored. */
void *pb_unpack(const ProtobufCMessageDescriptor *type, const char *what, const void *bytes, size_t n,
		struct hm_err *e) HM_MUST_USE;
void pb_free(void *message);

static inline void pb_auto_free(void *p)
{
	pb_free(*(void **)p);
}
#define pb_auto __attribute__((cleanup(pb_auto_free)))

/* Appends the packed message; a failure is the str's. */
void pb_pack(struct str *out, const void *message);
/* Appends the message as the length-delimited field `number` (1 to 15) of an outer one. */
void pb_pack_field(struct str *out, unsigned number, const void *message);
/* The same for one that is packed already. */
void pb_add_field(struct str *out, unsigned number, const struct str *packed);

/* 1 to PB_MAX_NAME_BYTES printable ASCII characters, no spaces. */
bool pb_name_ok(const char *s);
/* All of them are, and there are at most PB_MAX_IDS. `what` names the list in the error: "devices_ids". */
int pb_check_ids(const char *what, char *const *ids, size_t count, struct hm_err *e) HM_MUST_USE;

#endif
