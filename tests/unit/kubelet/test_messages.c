#include "kubelet/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"
#include "harness/sweep.h"
#include "rpc/limits.h"

/* The bytes are those of Google's protoc --encode on the same messages. */
#define ALLOCATE_ANSWER                                                                                                \
	"0a490a060a0141120131120a0a022f6312022f6818011a170a062f6465762f7812092f6465762f6e756c6c1a02727722060a016b1201" \
	"762a120a1068616d692e696f2f766770753d762e370a00"
#define DEVICES "0a160a0567303a3a3012074865616c7468791a040a0208010a120a0567303a3a311209556e6865616c746879"
#define PREFERRED_ANSWER "0a060a01610a01620a030a0163"
#define ALLOCATE_REQUEST "0a0e0a0567303a3a300a0567303a3a310a070a0567313a3a30"
#define PREFERRED_REQUEST "0a0e0a01610a01620a01631201621802"

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned v;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
		out[i] = (uint8_t)v;
	}
	return n;
}

static void assert_hex(const struct str *s, const char *hex)
{
	uint8_t want[256];
	size_t n = from_hex(hex, want);

	assert_int_equal(s->n, n);
	assert_memory_equal(s->p, want, n);
}

static void options(void **state)
{
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(message_write_options(&out), 0);
	assert_hex(&out, "08011001");
}

static const struct dp_device two_devices[] = { { "g0::0", true, 1 }, { "g0::1", false, -1 } };

static void devices(void **state)
{
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(message_write_devices(&out, two_devices, 2, NULL), 0);
	assert_hex(&out, DEVICES);
	str_clear(&out);
	assert_int_equal(message_write_devices(&out, NULL, 0, NULL), 0);
	assert_int_equal(out.n, 0);
}

/* 16,000 devices are well below the kubelet's 4 MiB; 80,000 are above it (c-stack.md: about 63 bytes each). */
static void many_devices(void **state)
{
	enum { MANY = 80000 };
	static struct dp_device list[MANY];
	static char ids[MANY][52];
	hm_auto_str out = { 0 };
	struct hm_err e = { 0 };

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		snprintf(ids[i], sizeof ids[i], "GPU-03f69c50-207a-2038-9b45-23cac89cb67a::%05zu", i);
		list[i] = (struct dp_device) { ids[i], true, 0 };
	}
	assert_int_equal(message_write_devices(&out, list, 16000, &e), 0);
	assert_true(out.n > 16000 * 50 && out.n < RPC_MAX_SEND_BYTES / 3);
	str_clear(&out);
	assert_int_equal(message_write_devices(&out, list, MANY, &e), -HM_ELIMIT);
	assert_non_null(strstr(e.msg, "the list of 80000 devices takes "));
	assert_non_null(strstr(e.msg, "the kubelet accepts 4194304"));
}

static int write_allocate(struct str *out)
{
	static const struct dp_env envs[] = { { "A", "1" } }, annotations[] = { { "k", "v" } };
	static const struct dp_mount mounts[] = { { "/c", "/h", true } };
	static const struct dp_node nodes[] = { { "/dev/x", "/dev/null", "rw" } };
	static const char *const cdi[] = { "hami.io/vgpu=v.7" };
	static const struct dp_container_answer answers[] = {
		{ envs, 1, mounts, 1, nodes, 1, annotations, 1, cdi, 1 },
		{ 0 },
	};

	return message_write_allocate(out, answers, 2);
}

static void allocate_answer(void **state)
{
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(write_allocate(&out), 0);
	assert_hex(&out, ALLOCATE_ANSWER);
}

static void preferred_answer(void **state)
{
	const char *const a[] = { "a", "b" }, *const b[] = { "c" };
	const char *const *const ids[] = { a, b };
	const size_t counts[] = { 2, 1 };
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(message_write_preferred(&out, ids, counts, 2), 0);
	assert_hex(&out, PREFERRED_ANSWER);
}

static void allocate_request(void **state)
{
	uint8_t bytes[64];
	size_t n = from_hex(ALLOCATE_REQUEST, bytes), count = 0;
	pb_auto void *message = NULL;
	hm_auto_heap struct dp_container_request *r = NULL;

	(void)state;
	assert_int_equal(message_read_allocate(bytes, n, &message, &r, &count, &(struct hm_err) { 0 }), 0);
	assert_int_equal(count, 2);
	assert_int_equal(r[0].count, 2);
	assert_string_equal(r[0].ids[0], "g0::0");
	assert_string_equal(r[0].ids[1], "g0::1");
	assert_int_equal(r[1].count, 1);
	assert_string_equal(r[1].ids[0], "g1::0");
}

static void preferred_request(void **state)
{
	uint8_t bytes[64];
	size_t n = from_hex(PREFERRED_REQUEST, bytes), count = 0;
	pb_auto void *message = NULL;
	hm_auto_heap struct dp_preferred_request *r = NULL;

	(void)state;
	assert_int_equal(message_read_preferred(bytes, n, &message, &r, &count, &(struct hm_err) { 0 }), 0);
	assert_int_equal(count, 1);
	assert_int_equal(r->available_count, 3);
	assert_string_equal(r->available[2], "c");
	assert_int_equal(r->must_count, 1);
	assert_string_equal(r->must[0], "b");
	assert_int_equal(r->size, 2);
}

static void pre_start_request(void **state)
{
	pb_auto void *message = NULL;
	struct dp_container_request r;

	(void)state;
	assert_int_equal(message_read_pre_start("\x0a\x05g0::0", 7, &message, &r, &(struct hm_err) { 0 }), 0);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.ids[0], "g0::0");
}

/* What a kubelet never sends. */
static void refused(void **state)
{
	static const struct {
		const char *hex, *msg;
		bool preferred;
	} cases[] = {
		{ "", "0 container requests in one call, 1 to 64 are taken", false },
		{ "0a030a0120", "devices_ids: id 0 is not 1 to 253 printable characters", false },
		{ "0a050a0567", "the 5 bytes are no AllocateRequest", false },
		{ "0a030a0161", "allocation_size is 0 with 1 available ids", true },
		{ "0a050a01611802", "allocation_size is 2 with 1 available ids", true },
		{ "0a0e0a016118ffffffffffffffffff01", "allocation_size is -1 with 1 available ids", true },
		{ "0a0e0a01610a01621201611201621801", "2 ids must be included in an allocation of 1", true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint8_t bytes[64];
		size_t n = from_hex(cases[i].hex, bytes), count;
		pb_auto void *message = NULL;
		hm_auto_heap struct dp_container_request *a = NULL;
		hm_auto_heap struct dp_preferred_request *p = NULL;
		struct hm_err e = { 0 };
		int r = cases[i].preferred ? message_read_preferred(bytes, n, &message, &p, &count, &e)
					   : message_read_allocate(bytes, n, &message, &a, &count, &e);

		assert_true(r < 0);
		assert_string_equal(e.msg, cases[i].msg);
		assert_null(message);
	}
}

static int scenario(void *arg)
{
	uint8_t bytes[64];
	size_t n = from_hex(ALLOCATE_REQUEST, bytes), count;
	pb_auto void *message = NULL, *message2 = NULL;
	hm_auto_heap struct dp_container_request *a = NULL;
	hm_auto_heap struct dp_preferred_request *p = NULL;
	hm_auto_str out = { 0 }, list = { 0 };
	struct hm_err e;

	(void)arg;
	if (message_read_allocate(bytes, n, &message, &a, &count, &e) < 0)
		return -e.code;
	n = from_hex(PREFERRED_REQUEST, bytes);
	if (message_read_preferred(bytes, n, &message2, &p, &count, &e) < 0)
		return -e.code;
	if (write_allocate(&out) < 0)
		return -1;
	return message_write_devices(&list, two_devices, 2, &e);
}

static void sweep(void **state)
{
	(void)state;
	sweep_check("messages", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options),           cmocka_unit_test(devices),
		cmocka_unit_test(many_devices),      cmocka_unit_test(allocate_answer),
		cmocka_unit_test(preferred_answer),  cmocka_unit_test(allocate_request),
		cmocka_unit_test(preferred_request), cmocka_unit_test(pre_start_request),
		cmocka_unit_test(refused),           cmocka_unit_test(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
