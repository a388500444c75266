#include "hami/signature.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <string.h>

#include "base/base64.h"
#include "hami/mig_text.h"
#include "hami/signature_keys.h"

enum { ED25519_BYTES = 64 };

static const char version[] = "v1.";

static int add_line(struct str *out, const char *name, const char *text, struct hm_err *e)
{
	if (text != NULL && strchr(text, '\n') != NULL)
		return hm_err_set(e, HM_EINVAL, "%s has a line break", name);
	str_add(out, text == NULL ? "" : text);
	str_addc(out, '\n');
	return 0;
}

int signature_text(const struct placement *p, struct str *out, struct hm_err *e)
{
	const struct {
		const char *name, *text;
	} lines[] = {
		{ "pod UID", p->pod_uid },
		{ "node name", p->node },
		{ "vgpu-time", p->time },
		{ "devices", p->devices },
	};
	hm_auto_mig_allocations mig = { 0 };
	int r = mig_text_parse(p->mig, &mig, e);

	if (r < 0)
		return hm_err_wrap(e, "MIG allocations");
	str_add(out, "hami-vgpu-v1\n");
	for (size_t i = 0; i < HM_COUNT(lines); i++) {
		r = add_line(out, lines[i].name, lines[i].text, e);
		if (r < 0)
			return r;
	}
	mig_text_write_canonical(&mig, out); /* JSON: no line break in it */
	str_addc(out, '\n');
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "signature") : 0;
}

/* "v1.<key id>.<signature>" */
static int read_signature(const char *text, char id[SIGNATURE_KEY_ID_BYTES], uint8_t bytes[ED25519_BYTES],
			  struct hm_err *e)
{
	struct cur c = cur_of(text, strlen(text));
	struct piece name, value;
	size_t n = 0;

	if (text[0] == 'v' && strncmp(text, version, sizeof version - 1) != 0)
		return hm_err_set(e, HM_EUNSUPPORTED, "signature \"%.32s\": only %s... is known", text, version);
	cur_word(&c, version);
	name = cur_until(&c, '.');
	value = cur_rest(&c);
	if (c.bad || !signature_key_id(name, id) || !base64url_decode(value.p, value.n, bytes, ED25519_BYTES, &n) ||
	    n != ED25519_BYTES)
		return hm_err_set(e, HM_EPROTO, "signature \"%.128s\" is not \"v1.<key id>.<base64url of 64 bytes>\"",
				  text);
	return 0;
}

int signature_check_begin(const struct signature_keys *k, const struct placement *p, const char *signature,
			  struct signature_check *out, struct str *text, struct hm_err *e)
{
	const struct signature_key *key;
	int r;

	*out = (struct signature_check) { 0 };
	if (signature == NULL || signature[0] == '\0')
		return hm_err_set(e, HM_ENOTFOUND, "the placement has no signature");
	r = read_signature(signature, out->id, out->bytes, e);
	if (r < 0)
		return r;
	key = signature_keys_find(k, out->id);
	if (key == NULL)
		return hm_err_set(e, HM_EPERM, "signed with key %s, which is not in the key folder", out->id);
	r = signature_text(p, text, e);
	if (r < 0)
		return r;
	if (EVP_PKEY_up_ref(key->key) != 1)
		return hm_err_set(e, HM_EINTERNAL, "signature");
	out->key = key->key;
	out->can_sign = key->can_sign;
	return 0;
}

void signature_check_fini(struct signature_check *c)
{
	EVP_PKEY_free(c->key);
	*c = (struct signature_check) { 0 };
}

static bool sign(EVP_MD_CTX *ctx, EVP_PKEY *key, const char *text, size_t text_n, uint8_t bytes[ED25519_BYTES])
{
	size_t n = ED25519_BYTES;

	return EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
	       EVP_DigestSign(ctx, bytes, &n, (const uint8_t *)text, text_n) == 1 && n == ED25519_BYTES;
}

static bool verify(EVP_MD_CTX *ctx, EVP_PKEY *key, const char *text, size_t n, const uint8_t bytes[ED25519_BYTES])
{
	return EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
	       EVP_DigestVerify(ctx, bytes, ED25519_BYTES, (const uint8_t *)text, n) == 1;
}

/* Of one text an Ed25519 key makes one signature. So who has the private half makes it again, and compares: a third of
 * a verification's time. Only what is another one is verified. */
int signature_check_end(const struct signature_check *c, const char *text, size_t n, struct hm_err *e)
{
	uint8_t own[ED25519_BYTES];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool good;

	_Static_assert(sizeof own == sizeof c->bytes, "a signature");
	if (ctx == NULL)
		return hm_err_set(e, HM_ENOMEM, "signature");
	good = c->can_sign && sign(ctx, c->key, text, n, own) && CRYPTO_memcmp(own, c->bytes, sizeof own) == 0;
	if (!good && EVP_MD_CTX_reset(ctx) == 1)
		good = verify(ctx, c->key, text, n, c->bytes);
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return good ? 0 : hm_err_set(e, HM_EPERM, "key %s did not sign this placement", c->id);
}

int signature_verify(const struct signature_keys *k, const struct placement *p, const char *signature, struct hm_err *e)
{
	struct signature_check c;
	hm_auto_str text = { 0 };
	int r = signature_check_begin(k, p, signature, &c, &text, e);

	if (r == 0)
		r = signature_check_end(&c, str_text(&text), text.n, e);
	signature_check_fini(&c);
	return r;
}

int signature_sign(const struct signature_keys *k, const struct placement *p, struct str *out, struct hm_err *e)
{
	const struct signature_key *key = signature_keys_newest(k);
	hm_auto_str text = { 0 };
	uint8_t bytes[ED25519_BYTES];
	EVP_MD_CTX *ctx;
	bool good;
	int r;

	if (key == NULL)
		return hm_err_set(e, HM_ENOTFOUND, "no private key to sign with");
	r = signature_text(p, &text, e);
	if (r < 0)
		return r;
	ctx = EVP_MD_CTX_new();
	if (ctx == NULL)
		return hm_err_set(e, HM_ENOMEM, "signature");
	good = sign(ctx, key->key, str_text(&text), text.n, bytes);
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	if (!good)
		return hm_err_set(e, HM_EINTERNAL, "signing with key %s failed", key->id);
	str_addf(out, "%s%s.", version, key->id);
	base64url_add(out, bytes, sizeof bytes);
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "signature") : 0;
}
