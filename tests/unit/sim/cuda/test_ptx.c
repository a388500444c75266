#include "sim/cuda/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/macros.h"
#include "harness/kernels_ptx.h"
#include "harness/sweep.h"
#include "harness/unit.h"

static enum ptx_result read_text(const char *text, struct ptx *out)
{
	return ptx_read(text, strlen(text), out);
}

static void our_kernels(void **state HM_UNUSED)
{
	struct ptx p;

	assert_int_equal(read_text(kernels_ptx, &p), PTX_OK);
	assert_int_equal(p.target, 50);
	assert_int_equal(p.count, 3);
	assert_string_equal(p.entries[0].name, "busy_ns");
	assert_int_equal(p.entries[0].params, 1);
	assert_int_equal(p.entries[0].param_bytes[0], 8);
	assert_string_equal(p.entries[1].name, "touch");
	assert_string_equal(p.entries[2].name, "meet");
	assert_int_equal(p.entries[1].params, 2);
	ptx_clear(&p);
}

#define HEAD ".version 8.3\n.target sm_90a\n.address_size 64\n"

static const struct {
	const char *text;
	enum ptx_result result;
	unsigned target, count, params, bytes; /* params and bytes of the last entry, bytes of all its parameters */
} cases[] = {
	{ HEAD, PTX_OK, 90, 0, 0, 0 },
	{ HEAD ".visible .entry none()\n{ ret; }", PTX_OK, 90, 1, 0, 0 },
	{ HEAD ".entry bare { ret; }", PTX_OK, 90, 1, 0, 0 },
	{ HEAD ".entry a(.param .u32 x, .param .f64 y, .param .b8 z) { ret; }", PTX_OK, 90, 1, 3, 13 },
	{ HEAD ".entry s(.param .align 8 .b8 s[24]) .maxntid 128, 1, 1 { ret; }", PTX_OK, 90, 1, 1, 24 },
	{ HEAD ".entry a() { ret; } .entry b(.param .u64 x) { ret; }", PTX_OK, 90, 2, 1, 8 },
	{ "/* .entry c( */ // .entry d(\n" HEAD ".entry a() { ret; }", PTX_OK, 90, 1, 0, 0 },
	{ ".version 7.0 .target sm_75, debug .address_size 64", PTX_OK, 75, 0, 0, 0 },
	{ "", PTX_BAD, 0, 0, 0, 0 },
	{ "hello", PTX_BAD, 0, 0, 0, 0 },
	{ ".version 7.0", PTX_BAD, 0, 0, 0, 0 }, /* no target */
	{ ".version 7.0 .target compute_75", PTX_BAD, 0, 0, 0, 0 },
	{ ".version 7.0 .target sm_", PTX_BAD, 0, 0, 0, 0 },
	{ ".version 7.0 .target", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry (", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry a(", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry a(.param", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry a(.param .u64 x", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry a(.param x)", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry a(.param .b8 x[99999]) { ret; }", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD ".entry a(.param .b8 x[", PTX_BAD, 0, 0, 0, 0 },
	{ HEAD "/* never ends", PTX_OK, 90, 0, 0, 0 },
};

static void texts(void **state HM_UNUSED)
{
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct ptx p;
		unsigned bytes = 0;

		print_message("%s\n", cases[i].text);
		assert_int_equal(read_text(cases[i].text, &p), cases[i].result);
		if (cases[i].result != PTX_OK) {
			assert_null(p.entries);
			continue;
		}
		assert_int_equal(p.target, cases[i].target);
		assert_int_equal(p.count, cases[i].count);
		const struct ptx_entry *last = p.count > 0 ? &p.entries[p.count - 1] : NULL;

		for (unsigned k = 0; last != NULL && k < last->params; k++)
			bytes += last->param_bytes[k];
		assert_int_equal(last != NULL ? last->params : 0, cases[i].params);
		assert_int_equal(bytes, cases[i].bytes);
		ptx_clear(&p);
	}
}

/* Any beginning of the text is read without touching a byte behind it. */
static void every_length(void **state HM_UNUSED)
{
	for (size_t n = 0; n < strlen(kernels_ptx); n++) {
		char *cut = malloc(n + 1);
		struct ptx p;

		assert_non_null(cut);
		memcpy(cut, kernels_ptx, n);
		if (ptx_read(cut, n, &p) == PTX_OK)
			ptx_clear(&p);
		free(cut);
	}
}

static void too_many(void **state HM_UNUSED)
{
	hm_auto_str text = { 0 };
	struct ptx p;

	str_add(&text, HEAD);
	for (int i = 0; i < PTX_ENTRIES; i++)
		str_add(&text, ".entry e() { ret; }\n");
	assert_int_equal(read_text(str_text(&text), &p), PTX_OK);
	assert_int_equal(p.count, PTX_ENTRIES);
	ptx_clear(&p);
	str_add(&text, ".entry e() { ret; }\n");
	assert_int_equal(read_text(str_text(&text), &p), PTX_BAD);
}

/* Variables in device memory; not what is another module's, nor a parameter that points to such memory. */
static void variables(void **state HM_UNUSED)
{
	static const struct {
		const char *text;
		unsigned count;
		uint64_t bytes, offset; /* of the last */
	} memory[] = {
		{ ".global .u32 a;", 1, 4, 0 },
		{ ".visible .global .align 8 .b8 a[1000];\n.global .f64 b = 0d0;", 2, 8, 1024 },
		{ ".global .align 16 .v4 .f32 a[3];", 1, 48, 0 },
		{ ".global .u8 t[4] = {1, 2, 3, 4};\n.global .u16 u;", 2, 2, 256 },
		{ ".extern .global .u32 a;", 0, 0, 0 },
		{ ".entry e(.param .u64 .ptr .global .align 4 p) { ret; }", 0, 0, 0 },
		{ ".global .b8 a[34359738368];", 1, 34359738368, 0 },
	};
	static const char *const bad[] = { ".global .u32", ".global a;", ".global .b8 a[];",
					   ".global .b8 a[34359738369];", ".global .align x .b8 a;" };

	for (size_t i = 0; i < HM_COUNT(memory); i++) {
		hm_auto_str text = { 0 };
		struct ptx p;

		print_message("case %zu\n", i);
		str_add(&text, HEAD);
		str_add(&text, memory[i].text);
		assert_int_equal(read_text(str_text(&text), &p), PTX_OK);
		assert_int_equal(p.variable_count, memory[i].count);
		if (p.variable_count > 0) {
			assert_int_equal(p.variables[p.variable_count - 1].bytes, memory[i].bytes);
			assert_int_equal(p.variables[p.variable_count - 1].offset, memory[i].offset);
		}
		ptx_clear(&p);
	}
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		hm_auto_str text = { 0 };
		struct ptx p;

		print_message("bad %zu\n", i);
		str_add(&text, HEAD);
		str_add(&text, bad[i]);
		assert_int_equal(read_text(str_text(&text), &p), PTX_BAD);
	}
}

static int scenario(void *arg HM_UNUSED)
{
	struct ptx p;

	if (read_text(kernels_ptx, &p) != PTX_OK)
		return -1;
	ptx_clear(&p);
	return 0;
}

static void sweep(void **state HM_UNUSED)
{
	sweep_check("ptx", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_kernels), cmocka_unit_test(texts),     cmocka_unit_test(every_length),
		cmocka_unit_test(too_many),    cmocka_unit_test(variables), cmocka_unit_test(sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
