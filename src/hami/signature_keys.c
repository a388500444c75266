#include "hami/signature_keys.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "core/fmt.h"
#include "core/fnv.h"
#include "io/file.h"

enum { MAX_FILE_BYTES = 16384, MAX_PATH_BYTES = 4096 };

/* What the folder looked like: a change of any file's name, time, size or inode changes it. */
struct sight {
	uint64_t sum;
	size_t files;
};

struct signature_keys {
	char dir[MAX_PATH_BYTES];
	struct sight seen;
	struct signature_key keys[SIGNATURE_MAX_KEYS]; /* sorted by id */
	size_t count;
	uint64_t version;
	bool wanted;
};

static void clear(struct signature_keys *k)
{
	for (size_t i = 0; i < k->count; i++)
		EVP_PKEY_free(k->keys[i].key);
	k->count = 0;
}

void signature_keys_free(struct signature_keys *k)
{
	if (k == NULL)
		return;
	clear(k);
	free(k);
}

bool signature_key_id(struct piece text, char out[SIGNATURE_KEY_ID_BYTES])
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	return text.n > 0 && piece_copy(text, out, SIGNATURE_KEY_ID_BYTES) && strspn(out, allowed) == text.n;
}

/* Without one OpenSSL asks the terminal for a passphrase. */
static int no_passphrase(char *out, int cap, int writing, void *arg)
{
	(void)out;
	(void)cap;
	(void)writing;
	(void)arg;
	return -1;
}

/* NULL where the text holds no Ed25519 key. */
static EVP_PKEY *read_key(const struct str *pem, bool *can_sign)
{
	BIO *bio = BIO_new_mem_buf(str_text(pem), (int)pem->n);
	EVP_PKEY *key = NULL;

	if (bio == NULL)
		return NULL;
	*can_sign = strstr(str_text(pem), "PRIVATE KEY-----") != NULL;
	if (*can_sign)
		key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	else
		key = PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
	BIO_free(bio);
	ERR_clear_error();
	if (key != NULL && EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) {
		EVP_PKEY_free(key);
		return NULL;
	}
	return key;
}

static void load_file(struct signature_keys *k, const char *id, const char *path)
{
	hm_auto_secret pem = { 0 };
	struct signature_key loaded = { 0 };
	struct hm_err e = { 0 };
	size_t at = k->count;

	if (file_read(path, MAX_FILE_BYTES, &pem, &e) < 0) {
		log_warn("key file left out", KV("file", path), KV_ERR(&e));
		return;
	}
	loaded.key = read_key(&pem, &loaded.can_sign);
	if (loaded.key == NULL || k->count == SIGNATURE_MAX_KEYS) {
		log_warn("key file left out", KV("file", path),
			 KV("reason", loaded.key == NULL ? "no Ed25519 key in PEM" : "too many keys"));
		EVP_PKEY_free(loaded.key);
		return;
	}
	(void)hm_fmt(loaded.id, sizeof loaded.id, "%s", id);
	while (at > 0 && strcmp(k->keys[at - 1].id, id) > 0) {
		k->keys[at] = k->keys[at - 1];
		at--;
	}
	k->keys[at] = loaded;
	k->count++;
}

static void look_at(struct sight *s, const char *name, const char *path)
{
	struct stat st = { 0 };
	uint64_t sum = fnv_add(FNV_BEGIN, name, strlen(name));

	if (stat(path, &st) == 0) {
		sum = fnv_add(sum, &st.st_mtim.tv_sec, sizeof st.st_mtim.tv_sec);
		sum = fnv_add(sum, &st.st_mtim.tv_nsec, sizeof st.st_mtim.tv_nsec);
		sum = fnv_add(sum, &st.st_ino, sizeof st.st_ino);
		sum = fnv_add(sum, &st.st_size, sizeof st.st_size);
	}
	s->sum += sum; /* folders list their files in any order */
	s->files++;
}

/* Each key file of the folder, into the sight and (where into isn't NULL) the keys. */
static int walk(const char *dir, struct sight *s, struct signature_keys *into, struct hm_err *e)
{
	DIR *d = opendir(dir);
	char path[MAX_PATH_BYTES + SIGNATURE_KEY_ID_BYTES + 1];

	*s = (struct sight) { 0 };
	if (d == NULL)
		return hm_err_errno(e, errno, "key folder %s", dir);
	for (const struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
		char id[SIGNATURE_KEY_ID_BYTES];

		if (!signature_key_id((struct piece) { entry->d_name, strlen(entry->d_name) }, id))
			continue;
		(void)hm_fmt(path, sizeof path, "%s/%s", dir, id);
		look_at(s, id, path);
		if (into != NULL)
			load_file(into, id, path);
	}
	closedir(d);
	return 0;
}

int signature_keys_refresh(struct signature_keys *k, struct hm_err *e)
{
	struct sight now, while_reading;
	hm_auto(signature_keys) *fresh = NULL;
	int r = walk(k->dir, &now, NULL, e);

	if (r < 0 || (now.sum == k->seen.sum && now.files == k->seen.files))
		return r;
	fresh = calloc(1, sizeof *fresh);
	if (fresh == NULL)
		return hm_err_set(e, HM_ENOMEM, "signature keys");
	r = walk(k->dir, &while_reading, fresh, e);
	if (r < 0)
		return r;
	clear(k);
	memcpy(k->keys, fresh->keys, sizeof k->keys);
	k->count = fresh->count;
	k->version++;
	k->wanted |= k->count > 0 || now.files > 0;
	fresh->count = 0;
	k->seen = now; /* not what was seen while reading: a file that changed meanwhile is read again */
	return 1;
}

int signature_keys_open(const char *dir, struct signature_keys **out, struct hm_err *e)
{
	hm_auto(signature_keys) *k = calloc(1, sizeof *k);
	int r;

	if (k == NULL)
		return hm_err_set(e, HM_ENOMEM, "signature keys");
	if (hm_fmt(k->dir, sizeof k->dir, "%s", dir) >= sizeof k->dir)
		return hm_err_set(e, HM_EINVAL, "key folder: a path of more than %d bytes", MAX_PATH_BYTES - 1);
	r = signature_keys_refresh(k, e);
	if (r < 0)
		return r;
	*out = HM_STEAL(k);
	return 0;
}

size_t signature_keys_count(const struct signature_keys *k)
{
	return k->count;
}

uint64_t signature_keys_version(const struct signature_keys *k)
{
	return k->version;
}

bool signature_keys_can_sign(const struct signature_keys *k)
{
	return signature_keys_newest(k) != NULL;
}

bool signature_keys_are_wanted(const struct signature_keys *k)
{
	return k->wanted;
}

void signature_keys_want(struct signature_keys *k)
{
	k->wanted = true;
}

const struct signature_key *signature_keys_find(const struct signature_keys *k, const char *id)
{
	for (size_t i = 0; i < k->count; i++) {
		if (strcmp(k->keys[i].id, id) == 0)
			return &k->keys[i];
	}
	return NULL;
}

const struct signature_key *signature_keys_newest(const struct signature_keys *k)
{
	for (size_t i = k->count; i-- > 0;) {
		if (k->keys[i].can_sign)
			return &k->keys[i];
	}
	return NULL;
}
