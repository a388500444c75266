#include "agent/hami/hami_late.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/fmt.h"
#include "hami_world.h"
#include "unit/agent/checkpoint_text.h"

/* The public key of RFC 8032, 7.1, test 1, and what its private one made of the placement of pod "s"
 * (openssl pkeyutl -sign -rawin of the text that contract/hami-annotations.md says). */
#define PUBLIC_1                                                                                                       \
	"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"                   \
	"-----END PUBLIC KEY-----\n"
#define SIGNED_TEXT "GPU-0-0-0-0-a,NVIDIA,3000,30:;"
#define SIGNED "v1.one.Ijng0WX2hDnQKrIQDEeA3WY7YwwXnZBFAnPGjlmOvj4XBQrqJzzPW8W_nl6sLlAYhlGtbXhyTu6L-Sk2abIGAQ"

/* Starts container c0 of the pod as number 7 with id "GPU-0-0-0-0-a-0"; keeps the claim as the agent does. Returns the
 * code. */
static int start(const char *name, struct hm_err *e)
{
	static const char *const ids[] = { "GPU-0-0-0-0-a-0" };
	struct prestart_target target = { .number = 7, .container = "c0" };
	struct claim c;
	int r;

	snprintf(target.pod_uid, sizeof target.pod_uid, "uid-%s", name);
	r = hami_late_start(w.late, &target, ids, 1, claims_find(w.claims, 7), &w.inventory, &c, e);
	if (r < 0)
		return r;
	c.state = CLAIM_ACTIVE;
	put_claim(w.claims, c);
	return 0;
}

static void a_first_start(void **state)
{
	const struct hami_late_config config = { .oversubscribe = true };
	const struct claim *c;
	struct hm_err e;

	(void)state;
	begin(&config);
	tell_pod("a", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,3000,30:;", ALLOCATING);
	assert_int_equal(start("a", &e), 0);
	c = claims_find(w.claims, 7);
	assert_string_equal(c->pod_uid, "uid-a");
	assert_string_equal(c->pod_namespace, "ns");
	assert_string_equal(c->pod_name, "a");
	assert_string_equal(c->container, "c0");
	assert_string_equal(c->resource, "nvidia.com/gpu");
	assert_string_equal(c->cdi, "hami.io/vgpu=v.7");
	assert_int_equal(c->card_count, 1);
	assert_string_equal(c->cards[0].uuid, "GPU-0-0-0-0-a");
	assert_int_equal(c->cards[0].memory_bytes, 3000ULL << 20);
	assert_int_equal(c->cards[0].cores, 30);
	assert_true(c->oversubscribe);
	assert_int_equal(c->priority, 1);
	assert_int_equal(c->device_count, 1);
	assert_string_equal(c->devices[0], "GPU-0-0-0-0-a-0");
	assert_string_equal(c->signature, "");
	assert_int_equal(fake_count, 0); /* nothing is asked of the API server before the start */
	hami_late_started(w.late, c);
	assert_non_null(strstr(fake_open()->body, "success"));
	assert_int_equal(stats().starts, 1);
	assert_int_equal(stats().mismatches, 0);
	end();
}

/* The scheduler said B, the kubelet's id is A's: counted, and B it is. */
static void the_annotation_decides_the_card(void **state)
{
	const struct hami_late_config config = { 0 };
	struct hm_err e;

	(void)state;
	begin(&config);
	tell_pod("a", "1", "Pending", "GPU-0-0-0-0-b,NVIDIA,3000,30:;", ALLOCATING);
	assert_int_equal(start("a", &e), 0);
	assert_string_equal(claims_find(w.claims, 7)->cards[0].uuid, "GPU-0-0-0-0-b");
	assert_int_equal(stats().mismatches, 1);
	end();
}

static void a_restart_keeps_what_it_had(void **state)
{
	const struct hami_late_config config = { 0 };
	struct hm_err e;

	(void)state;
	begin(&config);
	tell_pod("a", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,3000,30:;", ALLOCATING);
	assert_int_equal(start("a", &e), 0);
	tell_pod("a", "1", "Running", "GPU-0-0-0-0-a,NVIDIA,9999,90:;", ALLOCATING);
	assert_int_equal(start("a", &e), 0);
	assert_int_equal(claims_find(w.claims, 7)->cards[0].memory_bytes, 3000ULL << 20);
	tell_pod("a", "1", "Running", NULL, "'hami.io/vgpu-node':'node-2'");
	assert_int_equal(start("a", &e), 0);
	tell_gone("a"); /* or never told to this agent */
	assert_int_equal(start("a", &e), 0);
	assert_int_equal(claims_find(w.claims, 7)->cards[0].memory_bytes, 3000ULL << 20);
	assert_int_equal(stats().starts, 1);
	assert_int_equal(stats().restarts, 3);
	end();
}

/* Of a number whose claim was written for another container (without the checkpoint): nothing is taken over. */
static void a_claim_of_another_container_is_none(void **state)
{
	static const char *const ids[] = { "GPU-0-0-0-0-a-0" };
	const struct prestart_target target = { .number = 7, .pod_uid = "uid-a", .container = "c1" };
	const struct hami_late_config config = { 0 };
	struct claim c;
	struct hm_err e;

	(void)state;
	begin(&config);
	tell_pod("a", "11", "Pending", "GPU-0-0-0-0-a,NVIDIA,3000,30:;GPU-0-0-0-0-b,NVIDIA,4000,40:;", ALLOCATING);
	assert_int_equal(start("a", &e), 0);
	assert_int_equal(hami_late_start(w.late, &target, ids, 1, claims_find(w.claims, 7), &w.inventory, &c, &e), 0);
	assert_string_equal(c.container, "c1");
	assert_int_equal(c.cards[0].memory_bytes, 4000ULL << 20);
	claim_fini(&c);
	end();
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *asks, *text, *marks;
		int code;
		enum hami_refusal why;
		bool told; /* bind-phase failed */
		const char *says;
	} rows[] = {
		{ "1", NULL, ALLOCATING, -HM_EINVAL, HAMI_NOT_PLACED, true, "it was not placed by HAMi's scheduler" },
		{ "1", "GPU-0-0-0-0-a,NVIDIA,1,1:;", ALLOCATING ",'hami.io/vgpu-node':'node-2'", -HM_EINVAL,
		  HAMI_NOT_PLACED, true, "its cards were chosen on node \"node-2\"" },
		{ "1", "GPU-0-0-0-0-a,NVIDIA,1:;", ALLOCATING, -HM_EINVAL, HAMI_BAD_ANNOTATION, true,
		  "missing fields" },
		{ "2", "GPU-0-0-0-0-a,NVIDIA,1,1:;", ALLOCATING, -HM_EINVAL, HAMI_BAD_ANNOTATION, true,
		  "asks for 2 devices" },
		{ "1", "GPU-0-0-0-0-a,NVIDIA,0,1:;", ALLOCATING, -HM_EINVAL, HAMI_BAD_ANNOTATION, true, "0 MiB" },
		{ "x", "GPU-0-0-0-0-a,NVIDIA,1,1:;", ALLOCATING, -HM_EINVAL, HAMI_BAD_POD, true, "which is no count" },
		{ "1", "GPU-0-0-0-0-c,NVIDIA,1,1:;", ALLOCATING, -HM_EAGAIN, HAMI_UNKNOWN_CARD, false,
		  "pod ns/a: this node does not have the card GPU-0-0-0-0-c" },
		/* said before: not said again */
		{ "1", "GPU-0-0-0-0-a,NVIDIA,0,1:;", PHASE("failed"), -HM_EINVAL, HAMI_BAD_ANNOTATION, false, "0 MiB" },
	};
	const struct hami_late_config config = { 0 };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e;

		begin(&config);
		tell_pod("a", rows[i].asks, "Pending", rows[i].text, rows[i].marks);
		assert_int_equal(start("a", &e), rows[i].code);
		if (strstr(e.msg, rows[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.msg, rows[i].says);
		assert_int_equal(stats().refused[rows[i].why], 1);
		assert_int_equal(fake_count, rows[i].told ? 1 : 0);
		if (rows[i].told)
			assert_non_null(strstr(fake_open()->body, "\"hami.io/bind-phase\":\"failed\""));
		assert_int_equal(claims_count(w.claims), 0);
		end();
	}
}

static void a_pod_that_is_not_known_yet(void **state)
{
	const struct hami_late_config config = { 0 };
	struct hm_err e;

	(void)state;
	begin(&config);
	assert_int_equal(start("a", &e), -HM_EAGAIN);
	assert_string_equal(e.msg, "the API server has not told of a pod with UID uid-a on node node-1");
	assert_int_equal(stats().refused[HAMI_UNKNOWN_POD], 1);
	end();
}

/* What the pod asks for counts only where it is stricter than the node's own, but with --compat. */
static void policy_priority_and_control(void **state)
{
	static const struct {
		enum claim_policy node;
		bool compat;
		const char *env;
		enum claim_policy want;
		unsigned priority;
		bool uncontrolled;
	} rows[] = {
#define POLICY(word) "{'name':'GPU_CORE_UTILIZATION_POLICY','value':'" word "'}"
		{ CLAIM_POLICY_DEFAULT, false, "", CLAIM_POLICY_DEFAULT, 1, false },
		{ CLAIM_POLICY_DEFAULT, false, POLICY("force"), CLAIM_POLICY_FORCE, 1, false },
		{ CLAIM_POLICY_DEFAULT, false, POLICY("disable"), CLAIM_POLICY_DEFAULT, 1, false },
		{ CLAIM_POLICY_DEFAULT, true, POLICY("disable"), CLAIM_POLICY_DISABLE, 1, false },
		{ CLAIM_POLICY_DISABLE, false, POLICY("force"), CLAIM_POLICY_FORCE, 1, false },
		{ CLAIM_POLICY_DISABLE, false, "", CLAIM_POLICY_DISABLE, 1, false },
		{ CLAIM_POLICY_DEFAULT, false, POLICY("nonsense"), CLAIM_POLICY_DEFAULT, 1, false },
		{ CLAIM_POLICY_DEFAULT, false, "{'name':'CUDA_TASK_PRIORITY','value':'0'}", CLAIM_POLICY_DEFAULT, 0,
		  false },
		{ CLAIM_POLICY_DEFAULT, false, "{'name':'CUDA_TASK_PRIORITY','value':'5'}", CLAIM_POLICY_DEFAULT, 1,
		  false },
		{ CLAIM_POLICY_DEFAULT, false, "{'name':'CUDA_DISABLE_CONTROL','value':'true'}", CLAIM_POLICY_DEFAULT,
		  1, false },
		{ CLAIM_POLICY_DEFAULT, true, "{'name':'CUDA_DISABLE_CONTROL','value':'true'}", CLAIM_POLICY_DEFAULT, 1,
		  true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct hami_late_config config = { .policy = rows[i].node, .compat = rows[i].compat };
		hm_auto_str text = { 0 };
		const struct claim *c;
		struct hm_err e;

		begin(&config);
		str_addf(&text,
			 "{'metadata':{'name':'a','namespace':'ns','uid':'uid-a','resourceVersion':'1','annotations':{"
			 "'hami.io/vgpu-node':'node-1','hami.io/"
			 "vgpu-devices-allocated':'GPU-0-0-0-0-a,NVIDIA,1,1:;'}},'spec':{"
			 "'nodeName':'node-1','containers':[{'name':'c0','env':[%s],'resources':{'limits':{"
			 "'nvidia.com/gpu':'1'}}}]}}",
			 rows[i].env);
		fake_watch(str_text(&text), false);
		assert_int_equal(start("a", &e), 0);
		c = claims_find(w.claims, 7);
		assert_int_equal(c->policy, rows[i].want);
		assert_int_equal(c->priority, rows[i].priority);
		assert_int_equal(c->uncontrolled, rows[i].uncontrolled);
		assert_int_equal(stats().disable_control, strstr(rows[i].env, "DISABLE_CONTROL") != NULL);
		end();
		assert_int_equal(unlink(temp_path("claims/7")), 0);
	}
}

/* ---- signatures */

static void open_keys(void)
{
	struct hm_err e;

	mkdir(temp_path("keys"), 0755);
	temp_write("keys/one", PUBLIC_1);
	assert_int_equal(signature_keys_open(temp_path("keys"), &w.keys, &e), 0);
}

/* As after a restart of the agent, with w.keys. */
static void start_late_again(bool warn)
{
	const struct hami_late_config with = { .node = "node-1",
					       .resource = "nvidia.com/gpu",
					       .pods = w.pods,
					       .claims = w.claims,
					       .checkpoint = w.checkpoint,
					       .finish = w.finish,
					       .keys = w.keys,
					       .signature_warn = warn };
	struct hm_err e;

	hami_late_free(w.late);
	assert_int_equal(hami_late_new(&with, &w.late, &e), 0);
}

static void begin_with_keys(bool warn)
{
	const struct hami_late_config config = { .signature_warn = warn };

	begin(&config);
	open_keys();
	start_late_again(warn);
}

#define SIGNATURE(text) ALLOCATING ",'hami.io/vgpu-signature':'" text "'"

static void a_signed_placement_is_pinned(void **state)
{
	struct hm_err e;

	(void)state;
	begin_with_keys(false);
	tell_pod("s", "1", "Pending", SIGNED_TEXT, SIGNATURE(SIGNED));
	if (start("s", &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(claims_find(w.claims, 7)->signature, SIGNED);
	/* Another one later, though it be good for another text, is refused; the first again is fine without its key.
	 */
	tell_pod("s", "1", "Running", "GPU-0-0-0-0-a,NVIDIA,9999,30:;", SIGNATURE("v1.one.else"));
	assert_int_equal(start("s", &e), -HM_EINVAL);
	assert_int_equal(stats().refused[HAMI_OTHER_SIGNATURE], 1);
	assert_int_equal(unlink(temp_path("keys/one")), 0);
	temp_write("keys/two", PUBLIC_1);
	tell_pod("s", "1", "Running", SIGNED_TEXT, SIGNATURE(SIGNED));
	assert_int_equal(start("s", &e), 0);
	end();
}

/* Which container is meant is not signed, so the text of another container is looked at anew each time. */
static void a_text_changed_under_the_pinned_signature(void **state)
{
	struct claim c = make_claim(6, "uid-s", "hami.io/vgpu=v.6", "A-9", NULL);
	struct hm_err e;

	(void)state;
	begin_with_keys(false);
	snprintf(c.signature, sizeof c.signature, "%s", SIGNED);
	put_claim(w.claims, c); /* of an init container, say */
	tell_pod("s", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,9999,30:;", SIGNATURE(SIGNED));
	assert_false(hami_late_trusts(w.late, pods_find(w.pods, "uid-s")));
	assert_int_equal(start("s", &e), -HM_EINVAL);
	assert_int_equal(stats().refused[HAMI_NOT_SIGNED], 1);
	tell_pod("s", "1", "Pending", SIGNED_TEXT, SIGNATURE(SIGNED));
	assert_true(hami_late_trusts(w.late, pods_find(w.pods, "uid-s")));
	assert_int_equal(start("s", &e), 0);
	end();
}

/* A folder that is empty asks for nothing; a file in it, good or not, asks for signatures from then on. */
static void keys_that_come_later(void **state)
{
	static const char *const files[] = { PUBLIC_1, "no key at all" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(files); i++) {
		struct hm_err e;

		begin_with_keys(false);
		signature_keys_free(w.keys);
		assert_int_equal(unlink(temp_path("keys/one")), 0);
		assert_int_equal(signature_keys_open(temp_path("keys"), &w.keys, &e), 0);
		start_late_again(false);
		tell_pod("s", "1", "Pending", SIGNED_TEXT, ALLOCATING);
		assert_true(hami_late_trusts(w.late, pods_find(w.pods, "uid-s")));
		temp_write("keys/one", files[i]);
		assert_false(hami_late_trusts(w.late, pods_find(w.pods, "uid-s")));
		assert_int_equal(start("s", &e), -HM_EINVAL);
		assert_int_equal(unlink(temp_path("keys/one")), 0);
		assert_int_equal(start("s", &e), -HM_EINVAL);
		assert_int_equal(stats().refused[HAMI_NOT_SIGNED], 2);
		end();
	}
}

/* The agent starts again with a folder that is empty: a claim's signature says that there were keys. */
static void keys_that_have_gone(void **state)
{
	static const struct {
		const char *signature;
		int want;
	} rows[] = { { "", 0 }, { SIGNED, -HM_EINVAL } };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct hami_late_config none = { 0 };
		struct claim c = make_claim(6, "uid-first", "hami.io/vgpu=v.6", "A-9", NULL);
		struct hm_err e;

		begin(&none);
		snprintf(c.signature, sizeof c.signature, "%s", rows[i].signature);
		put_claim(w.claims, c);
		mkdir(temp_path("keys"), 0755);
		assert_int_equal(signature_keys_open(temp_path("keys"), &w.keys, &e), 0);
		start_late_again(false);
		tell_pod("s", "1", "Pending", SIGNED_TEXT, ALLOCATING);
		assert_int_equal(hami_late_trusts(w.late, pods_find(w.pods, "uid-s")), rows[i].want == 0);
		assert_int_equal(start("s", &e), rows[i].want);
		end();
	}
}

static void what_is_not_signed(void **state)
{
	static const struct {
		const char *name, *text, *marks;
	} rows[] = {
		{ "s", SIGNED_TEXT, ALLOCATING },
		{ "s", SIGNED_TEXT, SIGNATURE("nonsense") },
		{ "s", "GPU-0-0-0-0-a,NVIDIA,3001,30:;", SIGNATURE(SIGNED) },
		{ "other", SIGNED_TEXT, SIGNATURE(SIGNED) }, /* another pod's */
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e;

		begin_with_keys(false);
		tell_pod(rows[i].name, "1", "Pending", rows[i].text, rows[i].marks);
		assert_int_equal(start(rows[i].name, &e), -HM_EINVAL);
		assert_int_equal(stats().refused[HAMI_NOT_SIGNED], 1);
		end();
		begin_with_keys(true);
		tell_pod(rows[i].name, "1", "Pending", rows[i].text, rows[i].marks);
		assert_int_equal(start(rows[i].name, &e), 0);
		assert_int_equal(stats().unsigned_ok, 1);
		assert_string_equal(claims_find(w.claims, 7)->signature, "");
		end();
		assert_int_equal(unlink(temp_path("claims/7")), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_first_start),
		TEST(the_annotation_decides_the_card),
		TEST(a_restart_keeps_what_it_had),
		TEST(a_claim_of_another_container_is_none),
		TEST(what_is_refused),
		TEST(a_pod_that_is_not_known_yet),
		TEST(policy_priority_and_control),
		TEST(a_signed_placement_is_pinned),
		TEST(a_text_changed_under_the_pinned_signature),
		TEST(keys_that_come_later),
		TEST(keys_that_have_gone),
		TEST(what_is_not_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
