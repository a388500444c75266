/* The scheduler's signature of a placement: hami.io/vgpu-signature = "v1.<key id>.<base64url without padding>", Ed25519
 * over
 *     hami-vgpu-v1\n<pod UID>\n<node>\n<vgpu-time>\n<vgpu-devices-allocated>\n<mig-allocations, canonical, or
 * nothing>\n Keys are a folder of PEM files, each named by its key id (letters, digits, - and _): public keys to
 * verify, private ones to sign and verify. All verify; the last id in byte order signs, so ids that begin with a date
 * make the newest key the signing one, whatever a Secret's mount does to file times. docs/contracts/hami-annotations.md
 */
#ifndef HM_HAMI_SIGNATURE_H
#define HM_HAMI_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"

enum { SIGNATURE_KEY_ID_BYTES = 64, SIGNATURE_MAX_KEYS = 64 };

/* What is signed; texts as the API server has them, NULL as "". */
struct placement {
	const char *pod_uid, *node;
	const char *time;    /* HAMI_POD_TIME */
	const char *devices; /* HAMI_POD_ALLOCATED, exact bytes */
	const char *mig;     /* HAMI_POD_MIG_ALLOCATIONS as it stands, with or without instances' ids */
};

/* Appends the text that is signed. -HM_EINVAL where a part has a line break (two placements could share a text);
 * mig_text_parse's errors; -HM_ENOMEM. */
int signature_text(const struct placement *p, struct str *out, struct hm_err *e) HM_MUST_USE;

struct signature_keys;

/* Reads the folder. Files with a name that is no key id are not looked at (a Secret's mount has such), files that hold
 * no Ed25519 key are logged and left out. An empty folder is fine: then nothing verifies. -HM_ENOTFOUND, -HM_EPERM,
 * -HM_EIO, -HM_ENOMEM. */
int signature_keys_open(const char *dir, struct signature_keys **out, struct hm_err *e) HM_MUST_USE;
void signature_keys_free(struct signature_keys *k);
HM_DEFINE_AUTO(signature_keys, signature_keys_free);

/* Reads the folder again if it or a file in it changed: one stat for each file, so that it may be called before each
 * use. 1: other keys now, 0: no change; negative: cannot be read, the keys stay as they were. */
int signature_keys_refresh(struct signature_keys *k, struct hm_err *e) HM_MUST_USE;
size_t signature_keys_count(const struct signature_keys *k);
/* Another number for each set of keys: for who must look again at what was not believed. */
uint64_t signature_keys_version(const struct signature_keys *k);
bool signature_keys_can_sign(const struct signature_keys *k);
/* A key file has been there since the folder was opened, be it one that cannot be read: from then on what is not signed
 * is not to be trusted, also when the folder is empty again. */
bool signature_keys_are_wanted(const struct signature_keys *k);
/* A signature that was accepted earlier is known: there were keys, and what is not signed is not to be trusted. */
void signature_keys_want(struct signature_keys *k);

/* 0: one of the keys made this signature of this placement. Else -HM_ENOTFOUND (there is none: NULL or ""), -HM_EPROTO
 * (not of the form above), -HM_EUNSUPPORTED (a later version), -HM_EPERM (unknown key, or made of another placement),
 * or signature_text's errors. */
int signature_verify(const struct signature_keys *k, const struct placement *p, const char *signature,
		     struct hm_err *e) HM_MUST_USE;

/* The same in two parts, for who has many: what the signature says, with its key, and whether it is true. The first
 * needs the keys; the second takes nearly all of the time, and needs nothing that may change. */
struct signature_check {
	struct evp_pkey_st *key; /* a reference; NULL: nothing is to be checked */
	bool can_sign;
	char id[SIGNATURE_KEY_ID_BYTES];
	uint8_t bytes[64];
};
/* The text goes to the end of *text. All of signature_verify's errors but that the key did not sign this placement.
 * *out is freed with signature_check_fini, on failure too. */
int signature_check_begin(const struct signature_keys *k, const struct placement *p, const char *signature,
			  struct signature_check *out, struct str *text, struct hm_err *e) HM_MUST_USE;
/* 0, -HM_EPERM, -HM_ENOMEM. */
int signature_check_end(const struct signature_check *c, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;
void signature_check_fini(struct signature_check *c);

/* Appends the annotation's value, signed by the newest private key. -HM_ENOTFOUND where there is none. */
int signature_sign(const struct signature_keys *k, const struct placement *p, struct str *out,
		   struct hm_err *e) HM_MUST_USE;

#endif
