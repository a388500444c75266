/* The keys of signature.h: a folder of PEM files. */
#ifndef HM_HAMI_SIGNATURE_KEYS_H
#define HM_HAMI_SIGNATURE_KEYS_H

#include <openssl/evp.h>
#include <stdbool.h>

#include "core/cursor.h"
#include "hami/signature.h"

struct signature_key {
	char id[SIGNATURE_KEY_ID_BYTES];
	EVP_PKEY *key; /* owned; Ed25519 */
	bool can_sign;
};

bool signature_key_id(struct piece text, char out[SIGNATURE_KEY_ID_BYTES]) HM_MUST_USE;

/* NULL where there is none. */
const struct signature_key *signature_keys_find(const struct signature_keys *k, const char *id);
const struct signature_key *signature_keys_newest(const struct signature_keys *k); /* of those that can sign */

#endif
