#include "kubelet/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/base64.h"
#include "core/macros.h"
#include "harness/sweep.h"

#define HEAD "{\"Data\":{\"PodDeviceEntries\":["
#define TAIL "],\"RegisteredDevices\":{}},\"Checksum\":1}"
#define ENTRY(ids, answer)                                                                                             \
	"{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":\"r\",\"DeviceIDs\":" ids ",\"AllocResp\":" answer \
	"}"

/* The pod of real-cluster.md 2 as a 1.34.4 kubelet wrote it: i2 and a hold the same set, i1 and side overlap. */
static void real_kubelet(void **state)
{
	static const struct {
		const char *ids[2];
		size_t id_count;
		const char *owners[2]; /* container, twice where two entries have that set */
		const char *cdi[2];
	} cases[] = {
		{ { "g0::0" }, 1, { "c" }, { "hami.io/vgpu=g0-0.dn7zha57oexq" } },
		{ { "g0::1", "g0::2" }, 2, { "i1" }, { "hami.io/vgpu=g0-1_g0-2.dn7zhbtubygw" } },
		{ { "g0::2", "g0::1" }, 2, { "i1" }, { "hami.io/vgpu=g0-1_g0-2.dn7zhbtubygw" } },
		{ { "g0::1" }, 1, { "side" }, { "hami.io/vgpu=g0-1.dn7zhbtwkztf" } },
		{ { "g0::2" },
		  1,
		  { "i2", "a" },
		  { "hami.io/vgpu=g0-2.dn7zhbty2qlh", "hami.io/vgpu=g0-2.dn7zhbtzyz89" } },
		{ { "g0::3" }, 1, { "b" }, { "hami.io/vgpu=g0-3.dn7zhbu2b0u2" } },
		{ { "g1::0" }, 1, { NULL }, { NULL } },
	};
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(checkpoint_read(HM_GOLDEN "checkpoint-init-sidecar-two.json", NULL, &c, &e), 0);
	assert_int_equal(c->count, 6);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		size_t at = 0;

		for (size_t k = 0; k < 2 && cases[i].owners[k] != NULL; k++) {
			const struct checkpoint_entry *m =
				checkpoint_match(c, "hami.com/vgpu", cases[i].ids, cases[i].id_count, &at);

			assert_non_null(m);
			assert_string_equal(m->container, cases[i].owners[k]);
			assert_int_equal(m->cdi_count, 1);
			assert_string_equal(m->cdi_names[0], cases[i].cdi[k]);
		}
		assert_null(checkpoint_match(c, "hami.com/vgpu", cases[i].ids, cases[i].id_count, &at));
		at = 0;
		assert_null(checkpoint_match(c, "other.com/vgpu", cases[i].ids, cases[i].id_count, &at));
	}
	assert_string_equal(c->entries[0].pod_uid, "46228fc2-d3f4-4552-a939-588182f8f397");
}

static void empty(void **state)
{
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e = { 0 };
	size_t at = 0;

	(void)state;
	assert_int_equal(checkpoint_read(HM_GOLDEN "checkpoint-empty.json", NULL, &c, &e), 0);
	assert_int_equal(c->count, 0);
	assert_null(checkpoint_match(c, "r", NULL, 0, &at));
	checkpoint_free(HM_STEAL(c));
	assert_int_equal(checkpoint_read(HM_GOLDEN "no-such-file", NULL, &c, &e), -HM_ENOTFOUND);
	assert_null(c);
}

/* Ids over several NUMA nodes are one set; CDI names may stand in annotations (kubelets before 1.29). */
static void numa_and_annotations(void **state)
{
	/* annotations{key:"cdi.k8s.io/x" value:"v/c=1,v/c=2"} annotations{key:"other" value:"z"}
	 * cdi_devices{name:"v/c=0"} */
	static const char text[] =
		HEAD ENTRY("{\"1\":[\"b\"],\"-1\":null,\"0\":[\"c\",\"a\"]}",
			   "\"IhsKDGNkaS5rOHMuaW8veBILdi9jPTEsdi9jPTIiCgoFb3RoZXISAXoqBwoFdi9jPTA=\"") TAIL;
	hm_auto(checkpoint) *c = NULL;
	const char *want[] = { "c", "b", "a" };
	const struct checkpoint_entry *m;
	struct hm_err e = { 0 };
	size_t at = 0;

	(void)state;
	if (checkpoint_parse(text, sizeof text - 1, NULL, &c, &e) < 0)
		fail_msg("%s", e.msg);
	m = checkpoint_match(c, "r", want, 3, &at);
	assert_non_null(m);
	assert_string_equal(m->ids[0], "a");
	assert_string_equal(m->ids[2], "c");
	assert_int_equal(m->cdi_count, 3);
	assert_string_equal(m->cdi_names[0], "v/c=0");
	assert_string_equal(m->cdi_names[1], "v/c=1");
	assert_string_equal(m->cdi_names[2], "v/c=2");
	at = 0;
	assert_null(checkpoint_match(c, "r", want, 2, &at)); /* a part of the set is not the set */
}

/* The answer's mounts; one with an odd path is no reason to refuse the rest. */
static void mounts(void **state)
{
	/* mounts{container_path:"/run/hami-vgpu/usage" host_path:"/s/alloc/5/usage"}
	 * mounts{container_path:"" host_path:"/x"} */
	static const char text[] =
		HEAD ENTRY("{}", "\"EigKFC9ydW4vaGFtaS12Z3B1L3VzYWdlEhAvcy9hbGxvYy81L3VzYWdlEgQSAi94\"") TAIL;
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e = { 0 };

	(void)state;
	if (checkpoint_parse(text, sizeof text - 1, NULL, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(c->entries[0].mount_count, 1);
	assert_string_equal(checkpoint_mount_host(&c->entries[0], "/run/hami-vgpu/usage"), "/s/alloc/5/usage");
	assert_null(checkpoint_mount_host(&c->entries[0], "/x"));
}

/* A path is not a name: longer, with blanks, in any alphabet. */
static void mounts_of_long_paths(void **state)
{
	/* mounts{container_path:"/run/hami-vgpu/usage" host_path:"/a folder/\u00e9/" + 300 * "d" + "/5/usage"}
	 * mounts{container_path:"/x" host_path:"/y\nz"} */
	static const char text[] = HEAD ENTRY(
		"{}",
		"\"EtoCChQvcnVuL2hhbWktdmdwdS91c2FnZRLBAi9hIGZvbGRlci/DqS9kZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk"
		"ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk"
		"ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk"
		"ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk"
		"ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGQvNS91c2FnZRIKCgIveBIEL3kK"
		"eg==\"") TAIL;
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e = { 0 };
	const char *host;

	(void)state;
	if (checkpoint_parse(text, sizeof text - 1, NULL, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(c->entries[0].mount_count, 1);
	host = checkpoint_mount_host(&c->entries[0], "/run/hami-vgpu/usage");
	assert_non_null(host);
	assert_int_equal(strlen(host), 10 + 3 + 300 + 8);
	assert_memory_equal(host, "/a folder/\xc3\xa9/ddd", 16);
	assert_string_equal(host + 10 + 3 + 299, "d/5/usage");
}

/* One byte more than a path may have is none. */
static void mounts_of_paths_that_are_too_long(void **state)
{
	static const struct {
		size_t bytes;
		size_t mounts;
	} rows[] = { { 4095, 1 }, { 4096, 0 } };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		unsigned char answer[4200] = { 0x12, 0, 0, 0x0a, 2, '/', 'x', 0x12 };
		size_t inner = 4 + 3 + rows[i].bytes, n = 8;
		hm_auto_str text = { 0 };
		hm_auto(checkpoint) *c = NULL;
		struct hm_err e = { 0 };

		answer[1] = (unsigned char)(inner % 128 + 128);
		answer[2] = (unsigned char)(inner / 128);
		answer[n++] = (unsigned char)(rows[i].bytes % 128 + 128);
		answer[n++] = (unsigned char)(rows[i].bytes / 128);
		memset(answer + n, 'd', rows[i].bytes);
		str_add(&text, HEAD "{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":\"r\",\"DeviceIDs\":{},"
				    "\"AllocResp\":\"");
		base64_add(&text, answer, n + rows[i].bytes);
		str_add(&text, "\"}" TAIL);
		if (checkpoint_parse(str_text(&text), text.n, NULL, &c, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(c->entries[0].mount_count, rows[i].mounts);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *text, *msg; /* behind "kubelet checkpoint: " */
	} cases[] = {
		{ "", "empty" },
		{ "[]", "no JSON object" },
		{ HEAD ENTRY("{}", "null") TAIL "x", "line 1, column 154: something behind the JSON value" },
		{ "{", "line 1, column 1: not JSON" },
		{ "{\"Checksum\":1}", "Data is missing" },
		{ "{\"Data\":{},\"Data\":{}}", "Data stands there twice" },
		{ "{\"Data\":[]}", "Data is no object" },
		{ "{\"Data\":{\"PodDeviceEntries\":{}}}", "PodDeviceEntries is no list" },
		{ "{\"Data\":{}}", "PodDeviceEntries is missing" },
		{ HEAD "7" TAIL, "entry 0: no object" },
		{ HEAD "{}" TAIL, "entry 0: PodUID is missing" },
		{ HEAD "{\"PodUID\":\"\"}" TAIL, "entry 0: PodUID is not 1 to 253 printable characters" },
		{ HEAD "{\"PodUID\":\"a\\nb\"}" TAIL, "entry 0: PodUID is not 1 to 253 printable characters" },
		{ HEAD "{\"PodUID\":\"a\\u0000b\"}" TAIL, "NUL inside" },
		{ HEAD "{\"PodUID\":7}" TAIL, "entry 0: PodUID is not 1 to 253 printable characters" },
		{ HEAD ENTRY("{\"0\":[\"a\"]}", "null") "," ENTRY("[\"a\"]", "null") TAIL,
		  "entry 1: DeviceIDs is no object of lists by NUMA node (a kubelet before 1.20?)" },
		{ HEAD ENTRY("{\"0\":\"a\"}", "null") TAIL, "entry 0: DeviceIDs of a NUMA node is no list" },
		{ HEAD ENTRY("{\"0\":[\"a\",7]}", "null") TAIL,
		  "entry 0: a device id is not 1 to 253 printable characters" },
		{ HEAD ENTRY("{\"0\":[\"a\"],\"1\":[\"a\"]}", "null") TAIL, "entry 0: device id a stands there twice" },
		{ HEAD ENTRY("{}", "7") TAIL, "entry 0: AllocResp is no text" },
		{ HEAD ENTRY("{}", "\"a\"") TAIL, "entry 0: AllocResp is no base64" },
		{ HEAD ENTRY("{}", "\"KiAK\"") TAIL, "entry 0: the 3 bytes are no AllocResp" },
		{ HEAD ENTRY("{}", "\"KgMKASA=\"") TAIL, "entry 0: a CDI name is not 1 to 253 printable characters" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct checkpoint *c = NULL;
		struct hm_err e = { 0 };

		if (checkpoint_parse(cases[i].text, strlen(cases[i].text), NULL, &c, &e) == 0)
			fail_msg("taken: %s", cases[i].text);
		assert_null(c);
		assert_memory_equal(e.msg, "kubelet checkpoint: ", 20);
		assert_string_equal(e.msg + 20, cases[i].msg);
	}
}

/* Another plugin's entry may say what it likes; one of our own may not. */
static void anothers_entry_is_not_looked_at(void **state)
{
	static const char text[] = HEAD ENTRY("null", "\"!\"") "," ENTRY(
		"{\"0\":[\"a\\n\"]}", "3") ","
					   "{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":\"ours\","
					   "\"DeviceIDs\":{\"0\":[\"a\"]},"
					   "\"AllocResp\":\"KgMKAXg=\"}" TAIL;
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e = { 0 };

	(void)state;
	if (checkpoint_parse(text, sizeof text - 1, "ours", &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(c->count, 1);
	assert_string_equal(c->entries[0].resource, "ours");
	assert_string_equal(c->entries[0].cdi_names[0], "x");
	checkpoint_free(c);
	c = NULL;
	assert_int_equal(checkpoint_parse(text, sizeof text - 1, "r", &c, &e), -HM_EPROTO);
	assert_int_equal(checkpoint_parse(text, sizeof text - 1, NULL, &c, &e), -HM_EPROTO);
}

/* All entries, and what cannot be read is fatal where it may be ours. */
static void of_all_entries_anothers_may_be_odd(void **state)
{
#define OF(resource, ids, answer)                                                                                      \
	"{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":" resource ",\"DeviceIDs\":" ids                   \
	",\"AllocResp\":" answer "}"
#define GOOD(resource) OF(resource, "{\"0\":[\"a\"]}", "\"KgMKAXg=\"")
	static const struct {
		const char *text;
		int count; /* or a code */
	} rows[] = {
		{ HEAD GOOD("\"ours\"") "," GOOD("\"x/y\"") TAIL, 2 },
		{ HEAD OF("\"x/y\"", "null", "\"!\"") "," GOOD("\"ours\"") TAIL, 1 },
		{ HEAD GOOD("\"ours\"") "," OF("\"x/y\"", "{\"0\":[\"a\",\"b c\"]}", "null") TAIL, 1 },
		{ HEAD OF("\"x/y\"", "{\"0\":[\"a\"]}", "\"KgMKASA=\"") "," GOOD("\"z\"") TAIL, 1 },
		{ HEAD OF("\"our\"", "7", "null") TAIL, 0 },
		{ HEAD OF("\"ours\"", "7", "null") "," GOOD("\"x/y\"") TAIL, -HM_EPROTO },
		{ HEAD OF("\"m/mig-1g\"", "7", "null") TAIL, -HM_EPROTO },
		{ HEAD OF("7", "{}", "null") TAIL, -HM_EPROTO },
		{ HEAD "7" TAIL, -HM_EPROTO },
	};
	const struct checkpoint_ours ours = { "ours", "m/mig-" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(checkpoint) *c = NULL;
		struct hm_err e = { 0 };
		int r = checkpoint_parse_all(rows[i].text, strlen(rows[i].text), &ours, &c, &e);

		if ((r < 0 ? r : (int)c->count) != rows[i].count)
			fail_msg("%zu: %d %s", i, r, e.msg);
	}
}

/* Cut anywhere, a real file is refused. */
static void cut(void **state)
{
	static const char text[] = HEAD ENTRY("{\"0\":[\"a\"]}", "\"KgMKAXg=\"") TAIL;

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		struct checkpoint *c = NULL;

		assert_true(checkpoint_parse(text, n, NULL, &c, NULL) < 0);
		assert_null(c);
	}
}

static void *sweep_malloc(size_t n)
{
	return malloc(n);
}

static void sweep_free(void *p)
{
	free(p);
}

static int scenario(void *arg)
{
	static const char text[] = HEAD ENTRY("{\"0\":[\"a\",\"b\"]}", "\"KgMKAXg=\"") "," ENTRY("{}", "null") TAIL;
	cJSON_Hooks hooks = { sweep_malloc, sweep_free };
	hm_auto(checkpoint) *c = NULL;
	struct hm_err e;
	int r;

	(void)arg;
	cJSON_InitHooks(&hooks); /* cJSON's allocations fail too */
	r = checkpoint_parse(text, sizeof text - 1, NULL, &c, &e);
	cJSON_InitHooks(NULL);
	if (r < 0)
		assert_null(c);
	return r;
}

static void sweep(void **state)
{
	(void)state;
	sweep_check("checkpoint", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_kubelet),
		cmocka_unit_test(empty),
		cmocka_unit_test(numa_and_annotations),
		cmocka_unit_test(mounts),
		cmocka_unit_test(mounts_of_long_paths),
		cmocka_unit_test(mounts_of_paths_that_are_too_long),
		cmocka_unit_test(refused),
		cmocka_unit_test(cut),
		cmocka_unit_test(anothers_entry_is_not_looked_at),
		cmocka_unit_test(of_all_entries_anothers_may_be_odd),
		cmocka_unit_test(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
