#include "hami/signature.h"

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

int signature_verify(const struct signature_keys *k, const struct placement *p, const char *signature, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	char id[SIGNATURE_KEY_ID_BYTES];
	uint8_t bytes[ED25519_BYTES];
	const struct signature_key *key;
	EVP_MD_CTX *ctx;
	bool good;
	int r;

	if (signature == NULL || signature[0] == '\0')
		return hm_err_set(e, HM_ENOTFOUND, "the placement has no signature");
	r = read_signature(signature, id, bytes, e);
	if (r < 0)
		return r;
	key = signature_keys_find(k, id);
	if (key == NULL)
		return hm_err_set(e, HM_EPERM, "signed with key %s, which is not in the key folder", id);
	r = signature_text(p, &text, e);
	if (r < 0)
		return r;
	ctx = EVP_MD_CTX_new();
	if (ctx == NULL)
		return hm_err_set(e, HM_ENOMEM, "signature");
	good = EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key->key) == 1 &&
	       EVP_DigestVerify(ctx, bytes, sizeof bytes, (const uint8_t *)str_text(&text), text.n) == 1;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return good ? 0 : hm_err_set(e, HM_EPERM, "key %s did not sign this placement", id);
}

int signature_sign(const struct signature_keys *k, const struct placement *p, struct str *out, struct hm_err *e)
{
	const struct signature_key *key = signature_keys_newest(k);
	hm_auto_str text = { 0 };
	uint8_t bytes[ED25519_BYTES];
	size_t n = sizeof bytes;
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
	good = EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->key) == 1 &&
	       EVP_DigestSign(ctx, bytes, &n, (const uint8_t *)str_text(&text), text.n) == 1;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	if (!good)
		return hm_err_set(e, HM_EINTERNAL, "signing with key %s failed", key->id);
	str_addf(out, "%s%s.", version, key->id);
	base64url_add(out, bytes, n);
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "signature") : 0;
}
