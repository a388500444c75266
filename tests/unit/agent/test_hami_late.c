#include "agent/hami_late.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/hami_lookup.h"
#include "agent/hami_rebuild.h"
#include "core/fmt.h"
#include "fake_pods.h"
#include "fast_loop.h"
#include "harness/temp.h"
#include "unit/agent/checkpoint_text.h"

/* The public key of RFC 8032, 7.1, test 1, and what its private one made of these placements of pod "s" and "other"
 * (openssl pkeyutl -sign -rawin of the text that contract/hami-annotations.md says). */
#define PUBLIC_1                                                                                                       \
	"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"                   \
	"-----END PUBLIC KEY-----\n"
#define SIGNED_TEXT "GPU-0-0-0-0-a,NVIDIA,3000,30:;"
#define SIGNED "v1.one.Ijng0WX2hDnQKrIQDEeA3WY7YwwXnZBFAnPGjlmOvj4XBQrqJzzPW8W_nl6sLlAYhlGtbXhyTu6L-Sk2abIGAQ"

#define ALLOCATING PHASE("allocating")

static struct world {
	struct pods *pods;
	struct claims *claims;
	struct checkpoint_cache *checkpoint;
	struct pod_finish *finish;
	struct signature_keys *keys;
	struct hami_late *late;
	struct card cards[2];
	struct inventory inventory;
	char path[512];
} w;

static void begin(const struct hami_late_config *more)
{
	struct hami_late_config config = *more;
	struct hm_err e;

	fake_forget();
	w = (struct world) { .cards = { { .uuid = "GPU-0-0-0-0-a" }, { .uuid = "GPU-0-0-0-0-b" } } };
	w.inventory = (struct inventory) { .cards = w.cards, .count = 2 };
	snprintf(w.path, sizeof w.path, "%s", temp_path("kubelet_internal_checkpoint"));
	w.pods = make_pods();
	assert_int_equal(claims_open(temp_path("claims"), &w.claims, &e), 0);
	assert_int_equal(checkpoint_cache_new(w.path, "nvidia.com/gpu", &w.checkpoint, &e), 0);
	const struct pod_finish_config finish = { (struct kube_client *)&fake_loop, w.pods, w.claims,
						  "nvidia.com/gpu" };

	assert_int_equal(pod_finish_new(&finish, &w.finish, &e), 0);
	config.node = "node-1";
	config.resource = "nvidia.com/gpu";
	config.pods = w.pods;
	config.claims = w.claims;
	config.checkpoint = w.checkpoint;
	config.finish = w.finish;
	config.keys = w.keys;
	assert_int_equal(hami_late_new(&config, &w.late, &e), 0);
	fake_reflector.synced(fake_reflector.arg);
}

static void end(void)
{
	hami_late_free(w.late);
	pod_finish_free(w.finish);
	checkpoint_cache_free(w.checkpoint);
	signature_keys_free(w.keys);
	claims_free(w.claims);
	pods_free(w.pods);
}

static struct hami_late_stats stats(void)
{
	struct hami_late_stats s;

	hami_late_stats(w.late, &s);
	return s;
}

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
	tell_gone("a"); /* or never told to this agent */
	assert_int_equal(start("a", &e), 0);
	assert_int_equal(claims_find(w.claims, 7)->cards[0].memory_bytes, 3000ULL << 20);
	assert_int_equal(stats().starts, 1);
	assert_int_equal(stats().restarts, 2);
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

static void begin_with_keys(bool warn)
{
	const struct hami_late_config config = { .signature_warn = warn };
	struct signature_keys *keys;

	begin(&config);
	hami_late_free(w.late);
	open_keys();
	keys = w.keys;
	const struct hami_late_config with = { .node = "node-1",
					       .resource = "nvidia.com/gpu",
					       .pods = w.pods,
					       .claims = w.claims,
					       .checkpoint = w.checkpoint,
					       .finish = w.finish,
					       .keys = keys,
					       .signature_warn = warn };
	struct hm_err e;

	assert_int_equal(hami_late_new(&with, &w.late, &e), 0);
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

/* ---- GetPreferredAllocation */

static void checkpoint_has(const char *pod, const char *container)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"%s\",\"ContainerName\":\"%s\",\"ResourceName\":"
		 "\"nvidia.com/"
		 "gpu\",\"DeviceIDs\":{\"-1\":[\"GPU-0-0-0-0-a-9\"]},\"AllocResp\":\"\"}],\"RegisteredDevices\":{}},"
		 "\"Checksum\":1}",
		 pod, container);
	temp_write("new", str_text(&text));
	assert_int_equal(rename(temp_path("new"), w.path), 0);
}

/* The ids that are preferred, blanks between. */
static const char *prefer(const char *const *available, size_t count, const char *const *must, size_t must_count,
			  int64_t size)
{
	static char out[512];
	const struct dp_preferred_request req = { available, must, count, must_count, size };
	const char *ids[16];
	size_t n, at = 0;
	struct hm_err e;

	assert_int_equal(hami_late_prefer(w.late, &req, ids, &n, &e), 0);
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at += hm_fmt(out + at, sizeof out - at, "%s%s", i > 0 ? " " : "", ids[i]);
	return out;
}

static void steered_to_the_schedulers_cards(void **state)
{
	static const char *const all[] = { "GPU-0-0-0-0-a-0", "GPU-0-0-0-0-a-1", "GPU-0-0-0-0-a-2",
					   "GPU-0-0-0-0-b-0", "GPU-0-0-0-0-b-1", "GPU-0-0-0-0-b-2" };
	static const char *const must_b[] = { "GPU-0-0-0-0-b-2" }, *const only_a[] = { "GPU-0-0-0-0-a-1",
										       "GPU-0-0-0-0-a-2" };
	const struct hami_late_config config = { 0 };

	(void)state;
	begin(&config);
	assert_string_equal(prefer(all, 6, NULL, 0, 2), "GPU-0-0-0-0-a-0 GPU-0-0-0-0-a-1"); /* nobody is known */
	assert_int_equal(stats().not_steered, 1);
	tell_pod("done", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,1,1:;", PHASE("success"));
	tell_pod("b", "12", "Pending", "GPU-0-0-0-0-b,NVIDIA,1,1:;GPU-0-0-0-0-a,NVIDIA,1,1:GPU-0-0-0-0-b,NVIDIA,1,1:;",
		 ALLOCATING);
	tell_pod("later", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,1,1:;", ALLOCATING);
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-b-0");
	assert_string_equal(prefer(all, 6, NULL, 0, 2), "GPU-0-0-0-0-a-0 GPU-0-0-0-0-b-0");
	assert_string_equal(prefer(all, 6, must_b, 1, 2), "GPU-0-0-0-0-b-2 GPU-0-0-0-0-a-0");
	assert_string_equal(prefer(only_a, 2, NULL, 0, 1), "GPU-0-0-0-0-a-1"); /* none of B's is left: never an error */
	assert_string_equal(prefer(only_a, 2, NULL, 0, 3), "GPU-0-0-0-0-a-1 GPU-0-0-0-0-a-2");
	assert_string_equal(prefer(all, 6, NULL, 0, 0), "");
	assert_string_equal(prefer(all, 6, NULL, 0, -1), "");
	checkpoint_has("uid-b", "c0");
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-a-0"); /* the next pod's turn */
	put_claim(w.claims, make_claim(5, "uid-x", "hami.io/vgpu=v.5", "GPU-0-0-0-0-a-0", "GPU-0-0-0-0-a-1"));
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-a-2"); /* what a live claim has comes last */
	put_claim(w.claims, make_claim(6, "uid-y", "hami.io/vgpu=v.6", "GPU-0-0-0-0-a-2", NULL));
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-a-0");
	end();
}

/* ---- without the checkpoint: the kubelet's list is the test's */

static struct pod_lookup_found listed;
static int listed_code;

int __wrap_pod_lookup_find(struct pod_lookup *p, const char *const *ids, size_t count, struct pod_lookup_found *out,
			   struct hm_err *e);
int __wrap_pod_lookup_find(struct pod_lookup *p, const char *const *ids, size_t count, struct pod_lookup_found *out,
			   struct hm_err *e)
{
	(void)p, (void)ids, (void)count;
	*out = listed;
	return listed_code < 0 ? hm_err_set(e, -listed_code, "says the test") : 0;
}

/* A pod of an init container i and a main one c, one device each, equal or not; the status of i. */
static void tell_init_pod(const char *allocated, const char *state)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'a','namespace':'ns','uid':'uid-a','resourceVersion':'1','annotations':{"
		 "'hami.io/vgpu-node':'node-1','hami.io/vgpu-devices-allocated':'%s'}},'spec':{'nodeName':'node-1',"
		 "'initContainers':[{'name':'i','resources':{'limits':{'nvidia.com/gpu':'1'}}}],"
		 "'containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'1'}}}]},"
		 "'status':{'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'%s':{}}}]}}",
		 allocated, state);
	fake_watch(str_text(&text), false);
}

#define EQUAL "GPU-0-0-0-0-a,NVIDIA,5,5:;GPU-0-0-0-0-a,NVIDIA,5,5:;"
#define OTHER "GPU-0-0-0-0-a,NVIDIA,4,5:;GPU-0-0-0-0-a,NVIDIA,5,5:;"

static void the_list_counts_where_nothing_else_may_be_meant(void **state)
{
	static const struct {
		const char *allocated, *init_state, *listed_pod;
		int code;
		const char *says; /* or the container */
	} rows[] = {
		{ EQUAL, "waiting", "a", 0, "c" },
		{ OTHER, "terminated", "a", 0, "c" },
		{ OTHER, "waiting", "a", -HM_EAGAIN,
		  "does not say whether container c or init container i of pod ns/a" },
		{ OTHER, "running", "a", -HM_EAGAIN, "does not say" },
		{ EQUAL, "waiting", "b", -HM_EAGAIN, "has not told of pod ns/b" },
		{ EQUAL, "waiting", NULL, -HM_EAGAIN, "says the test" },
	};
	static const char *const ids[] = { "GPU-0-0-0-0-a-0" };
	const struct hami_late_config config = { .lookup = (struct pod_lookup *)&w };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct prestart_target target = { .number = 7 };
		struct claim c = { 0 };
		struct hm_err e = { 0 };

		begin(&config);
		tell_init_pod(rows[i].allocated, rows[i].init_state);
		listed_code = rows[i].listed_pod == NULL ? -HM_EAGAIN : 0;
		listed = (struct pod_lookup_found) { "ns", "", "c" };
		snprintf(listed.pod, sizeof listed.pod, "%s", rows[i].listed_pod != NULL ? rows[i].listed_pod : "");
		assert_int_equal(hami_late_start(w.late, &target, ids, 1, NULL, &w.inventory, &c, &e), rows[i].code);
		if (rows[i].code == 0) {
			assert_string_equal(c.container, rows[i].says);
			assert_string_equal(c.pod_uid, "uid-a");
			assert_int_equal(c.cards[0].memory_bytes, 5 << 20);
		} else if (strstr(e.msg, rows[i].says) == NULL) {
			fail_msg("\"%s\" does not say \"%s\"", e.msg, rows[i].says);
		}
		claim_fini(&c);
		end();
	}
}

/* ---- claims that were lost */

static void lost_claims(void **state)
{
	const struct hami_late_config config = { 0 };
	struct hm_err e;

	(void)state;
	begin(&config);
	const struct hami_rebuild_config rebuild = { w.late, w.claims, w.pods, w.checkpoint };

	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), 0); /* no checkpoint: nothing held */
	temp_write(
		"kubelet_internal_checkpoint",
		"{\"Data\":{\"PodDeviceEntries\":["
		"{\"PodUID\":\"uid-runs\",\"ContainerName\":\"c0\",\"ResourceName\":\"nvidia.com/gpu\",\"DeviceIDs\":"
		"{\"-1\":[\"GPU-0-0-0-0-a-9\"]},\"AllocResp\":\"" CDI_5 "\"},"
		"{\"PodUID\":\"uid-waits\",\"ContainerName\":\"c0\",\"ResourceName\":\"nvidia.com/gpu\",\"DeviceIDs\":"
		"{\"-1\":[\"GPU-0-0-0-0-a-8\"]},\"AllocResp\":\"" CDI_6
		"\"}],\"RegisteredDevices\":{}},\"Checksum\":1}");
	tell_pod("runs", "1", "Running", "GPU-0-0-0-0-b,NVIDIA,77,7:;", PHASE("success"));
	tell_pod("waits", "1", "Pending", "GPU-0-0-0-0-b,NVIDIA,88,8:;", ALLOCATING);
	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), 1);
	assert_int_equal(claims_count(w.claims), 1);
	assert_int_equal(claims_find(w.claims, 5)->state, CLAIM_ACTIVE);
	assert_int_equal(claims_find(w.claims, 5)->cards[0].memory_bytes, 77 << 20);
	assert_string_equal(claims_find(w.claims, 5)->devices[0], "GPU-0-0-0-0-a-9");
	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), 0);
	temp_write("kubelet_internal_checkpoint", "torn");
	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), -HM_EAGAIN);
	end();
}

static int set_up(void **state)
{
	struct hm_err e;

	log_set_sink(fast_keep_line, NULL);
	return temp_setup(state) < 0 ? -1 : loop_new(&fake_loop, &e);
}

static int tear_down(void **state)
{
	fake_forget();
	loop_free(fake_loop);
	return temp_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_first_start),
		TEST(the_annotation_decides_the_card),
		TEST(a_restart_keeps_what_it_had),
		TEST(what_is_refused),
		TEST(a_pod_that_is_not_known_yet),
		TEST(policy_priority_and_control),
		TEST(a_signed_placement_is_pinned),
		TEST(what_is_not_signed),
		TEST(steered_to_the_schedulers_cards),
		TEST(the_list_counts_where_nothing_else_may_be_meant),
		TEST(lost_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
