#include "hami/signature.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fmt.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/hami/signed_placement.h"

/* The keys of RFC 8032, 7.1, tests 1 and 2; the signatures are openssl-pkeyutl's of the texts below. */
#define PUBLIC_1                                                                                                       \
	"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"                   \
	"-----END PUBLIC KEY-----\n"
#define PRIVATE_2                                                                                                      \
	"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"              \
	"-----END PRIVATE KEY-----\n"
#define PUBLIC_2                                                                                                       \
	"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"                   \
	"-----END PUBLIC KEY-----\n"
#define PUBLIC_X25519                                                                                                  \
	"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEAa8Wq7Iagqt3FuoWQ7tpG+r+cx8lshhus2O2sHkksrBg=\n"                   \
	"-----END PUBLIC KEY-----\n"
#define ENCRYPTED                                                                                                      \
	"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"                                                                      \
	"MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi4tzZiUr88jgICCAAw\n"                                           \
	"DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEH9xrsdXepHP1sBEQKeEPnUEQBpP\n"                                           \
	"2efjNlu9Oi6vvdoB28O5dC4+doSA6o2tlFI+mc8uBGaQ8hbBUs20ZfPtgwsti8+j\n"                                           \
	"cmzr4saADivb2ndzvKE=\n-----END ENCRYPTED PRIVATE KEY-----\n"

#define RECORD(device, profile, start)                                                                                 \
	"{\"containerIndex\":0,\"deviceIndex\":" #device ",\"gpuUUID\":\"GPU-a\",\"profile\":\"" profile               \
	"\",\"placement\":{\"start\":" #start ",\"size\":1}"

static const struct placement plain = { POD_UID, "node-1", "1787293239", "GPU-a,NVIDIA,3000,30:;", NULL };
static const char plain_text[] = "hami-vgpu-v1\n" POD_UID "\nnode-1\n1787293239\nGPU-a,NVIDIA,3000,30:;\n\n";
#define PLAIN_BY_2 "7P8TvLJ_-Ww9UB1TDsRv5dN4KDe6cvHRuPwtjpYUvd_dmJS3iSdB4JkMffZIzksFlgr3OwxP-EWg3HnEqMNEAg"

/* As the agent leaves it: an instance made, another program's member, and out of order. */
static const struct placement mig = {
	POD_UID, "node-1", "1787293239", "GPU-a,NVIDIA,4864,0:GPU-a,NVIDIA,4864,0:;",
	"[ " RECORD(1, "1g.5gb+me", 5) ",\"x\":\"y\"}," RECORD(
		0, "1g.5gb", 6) ",\"migUUID\":\"MIG-1\",\"gpuInstanceID\":1,\"computeInstanceID\":0} ]"
};
static const char mig_text[] =
	"hami-vgpu-v1\n" POD_UID "\nnode-1\n1787293239\n"
	"GPU-a,NVIDIA,4864,0:GPU-a,NVIDIA,4864,0:;\n[" RECORD(0, "1g.5gb", 6) "}," RECORD(1, "1g.5gb+me", 5) "}]\n";
#define MIG_BY_1 "8_aoqCrqzfBc8fF8ytVWfl4V17YynrviEefXZOhZRt4D0WitipUlw6Jl2aWYSLyMvvRWub2kG0YFk8xjspDiCQ"

static void test_text(void **state)
{
	static const struct placement nothing = { 0 };
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(signature_text(&plain, &text, &e), 0);
	assert_string_equal(str_text(&text), plain_text);
	str_clear(&text);
	assert_int_equal(signature_text(&mig, &text, &e), 0);
	assert_string_equal(str_text(&text), mig_text);
	str_clear(&text);
	assert_int_equal(signature_text(&nothing, &text, &e), 0);
	assert_string_equal(str_text(&text), "hami-vgpu-v1\n\n\n\n\n\n");
}

static void test_ambiguous(void **state)
{
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct placement p = plain;
		const char **parts[] = { &p.pod_uid, &p.node, &p.time, &p.devices };
		hm_auto_str text = { 0 };

		*parts[i] = "a\nb";
		assert_int_equal(signature_text(&p, &text, &e), -HM_EINVAL);
	}
}

static struct signature_keys *keys(void)
{
	struct signature_keys *k = NULL;
	struct hm_err e;

	if (signature_keys_open(temp_path(""), &k, &e) < 0)
		fail_msg("%s", e.msg);
	return k;
}

static int verify(const struct placement *p, const char *signature)
{
	hm_auto(signature_keys) *k = keys();
	struct hm_err e;

	return signature_verify(k, p, signature, &e);
}

static void check_verify(const char *key_1)
{
	temp_write("2026-10", key_1);
	temp_write("2026-11_b", PUBLIC_2);
	assert_int_equal(verify(&plain, "v1.2026-10." PLAIN_BY_1), 0);
	assert_int_equal(verify(&plain, "v1.2026-11_b." PLAIN_BY_2), 0);
	assert_int_equal(verify(&mig, "v1.2026-10." MIG_BY_1), 0);
	assert_int_equal(verify(&plain, "v1.2026-10." PLAIN_BY_2), -HM_EPERM);
	assert_int_equal(verify(&mig, "v1.2026-10." PLAIN_BY_1), -HM_EPERM);
	assert_int_equal(verify(&plain, "v1.2026-12." PLAIN_BY_1), -HM_EPERM);
	assert_int_equal(verify(&plain, NULL), -HM_ENOTFOUND);
	assert_int_equal(verify(&plain, ""), -HM_ENOTFOUND);
	assert_int_equal(verify(&plain, "v2.2026-10." PLAIN_BY_1), -HM_EUNSUPPORTED);
}

/* Who has the private half signs again and compares. */
static void test_verify(void **state)
{
	(void)state;
	check_verify(PUBLIC_1);
	check_verify(PRIVATE_1);
}

/* Each part of the placement is covered: a change of any makes the signature worthless. */
static void check_any_change(const char *key)
{
	temp_write("k", key);
	for (size_t i = 0; i < 5; i++) {
		struct placement p = mig;
		const char **parts[] = { &p.pod_uid, &p.node, &p.time, &p.devices, &p.mig };

		*parts[i] = i < 4 ? "other" : "[" RECORD(0, "1g.5gb", 6) "}," RECORD(1, "1g.5gb+me", 4) "}]";
		assert_int_equal(verify(&p, "v1.k." MIG_BY_1), -HM_EPERM);
	}
}

static void test_any_change(void **state)
{
	(void)state;
	check_any_change(PUBLIC_1);
	check_any_change(PRIVATE_1);
}

static void test_malformed(void **state)
{
	static const char *const bad[] = {
		"x",
		"v1.",
		"v1.k",
		"v1.k.",
		"v1.." PLAIN_BY_1,
		"v1.k k." PLAIN_BY_1,
		"v1.k.l." PLAIN_BY_1,
		"v1.k." PLAIN_BY_1 "==",
		"v1.k." PLAIN_BY_1 "A",
		"v1.k.AAAA",
		" v1.k." PLAIN_BY_1,
		/* the same bytes with the unused bits of the last letter set */
		"v1.k.Tj30BXA3w3HDZWM1GwDk-AoApolpPe6BiuJmim4IeVobBKclLbqJ6MnY8_SVp0EpjJHP2xJt3gAy4O6ZMjQsDR",
		"v1.k.Tj30BXA3w3HDZWM1GwDk+AoApolpPe6BiuJmim4IeVobBKclLbqJ6MnY8/SVp0EpjJHP2xJt3gAy4O6ZMjQsDQ",
		"v1.1234567890123456789012345678901234567890123456789012345678901234." PLAIN_BY_1,
	};

	(void)state;
	temp_write("k", PUBLIC_1);
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		if (verify(&plain, bad[i]) != -HM_EPROTO)
			fail_msg("%s", bad[i]);
	}
}

static void test_sign(void **state)
{
	hm_auto(signature_keys) *k = NULL;
	hm_auto_str first = { 0 };
	hm_auto_str second = { 0 };
	hm_auto_str none = { 0 };
	struct hm_err e;

	(void)state;
	k = keys();
	assert_int_equal(signature_sign(k, &plain, &first, &e), -HM_ENOTFOUND);
	temp_write("2026-10", PRIVATE_1);
	temp_write("2026-12", PUBLIC_2); /* newer, but cannot sign */
	assert_int_equal(signature_keys_refresh(k, &e), 1);
	assert_int_equal(signature_sign(k, &plain, &first, &e), 0);
	assert_string_equal(str_text(&first), "v1.2026-10." PLAIN_BY_1);
	temp_write("2026-11", PRIVATE_2);
	assert_int_equal(signature_keys_refresh(k, &e), 1);
	assert_int_equal(signature_sign(k, &plain, &second, &e), 0);
	assert_string_equal(str_text(&second), "v1.2026-11." PLAIN_BY_2);
	assert_int_equal(signature_verify(k, &plain, str_text(&first), &e), 0);
	assert_int_equal(signature_verify(k, &plain, str_text(&second), &e), 0);
	assert_int_equal(signature_sign(k, &(struct placement) { .node = "\n" }, &none, &e), -HM_EINVAL);
}

static void test_refresh(void **state)
{
	hm_auto(signature_keys) *k = keys();
	struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	struct hm_err e;

	(void)state;
	assert_int_equal(signature_keys_count(k), 0);
	assert_int_equal(signature_keys_refresh(k, &e), 0);
	temp_write("a", PUBLIC_1);
	assert_int_equal(signature_keys_refresh(k, &e), 1);
	assert_int_equal(signature_keys_refresh(k, &e), 0);
	assert_int_equal(signature_keys_count(k), 1);
	/* The same name and size, another key, as a rotation in place writes it. */
	temp_write("a", PUBLIC_2);
	assert_int_equal(utimensat(AT_FDCWD, temp_path("a"), times, 0), 0);
	assert_int_equal(signature_keys_refresh(k, &e), 1);
	assert_int_equal(signature_verify(k, &plain, "v1.a." PLAIN_BY_2, &e), 0);
	assert_int_equal(unlink(temp_path("a")), 0);
	assert_int_equal(signature_keys_refresh(k, &e), 1);
	assert_int_equal(signature_keys_count(k), 0);
}

/* The folder goes away: the keys that are known stay. */
static void test_folder_gone(void **state)
{
	hm_auto(signature_keys) *k = NULL;
	struct signature_keys *none = NULL;
	struct hm_err e;
	char dir[256];

	(void)state;
	(void)hm_fmt(dir, sizeof dir, "%s", temp_path("keys"));
	assert_int_equal(mkdir(dir, 0700), 0);
	temp_write("keys/a", PUBLIC_1);
	assert_int_equal(signature_keys_open(dir, &k, &e), 0);
	assert_int_equal(rename(dir, temp_path("elsewhere")), 0);
	assert_int_equal(signature_keys_refresh(k, &e), -HM_ENOTFOUND);
	assert_int_equal(signature_verify(k, &plain, "v1.a." PLAIN_BY_1, &e), 0);
	assert_int_equal(signature_keys_open(dir, &none, &e), -HM_ENOTFOUND);
}

/* What a Secret's mount and a careless hand leave beside the keys. */
static void test_other_files(void **state)
{
	hm_auto(signature_keys) *k = NULL;

	(void)state;
	assert_int_equal(mkdir(temp_path("..2026_11_30"), 0700), 0);
	temp_write("..2026_11_30/good", PUBLIC_1);
	assert_int_equal(symlink("..2026_11_30", temp_path("..data")), 0);
	assert_int_equal(symlink("..data/good", temp_path("good")), 0);
	assert_int_equal(symlink("nowhere", temp_path("dangling")), 0);
	temp_write("good.pub", PUBLIC_1);
	temp_write("x25519", PUBLIC_X25519);
	temp_write("encrypted", ENCRYPTED);
	temp_write("empty", "");
	temp_write("text", "-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----\n");
	assert_int_equal(mkdir(temp_path("folder"), 0700), 0);
	k = keys();
	assert_int_equal(signature_keys_count(k), 1);
}

static int verify_once(void *arg)
{
	hm_auto(signature_keys) *k = NULL;
	struct hm_err e;
	int r = signature_keys_open(temp_path(""), &k, &e);

	(void)arg;
	/* A key file that could not be read for lack of memory is left out, which is no failure of open. */
	if (r == 0 && signature_keys_count(k) == 0)
		return -HM_ENOMEM;
	return r < 0 ? r : signature_verify(k, &mig, "v1.k." MIG_BY_1, &e);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	temp_write("k", PUBLIC_1);
	sweep_check("signature_verify", verify_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_ambiguous),
		cmocka_unit_test_setup_teardown(test_verify, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_any_change, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_malformed, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_sign, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_refresh, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_folder_gone, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_other_files, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(test_out_of_memory, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
