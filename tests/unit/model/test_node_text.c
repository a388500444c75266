#include "model/node_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "unit/model/make_inventory.h"

static const char sample[] =
	"hami-vgpu-node 1\n"
	"slots_per_card=4\n"
	"slot_memory_mb=0\n"
	"slicing=dynamic\n"
	"binding=classic\n"
	"pid=1234\n"
	"card=GPU-00000000-0000-0000-0000-000000000000 slots=4 slot_memory=4026531840 slot_cores=25\n"
	"card=GPU-00000000-0000-0000-0000-000000000001 slots=4 slot_memory=4026531840 slot_cores=25\n"
	"end\n";

static void test_from_slots(void **state)
{
	hm_auto(inventory) *inv = make_inventory(2, 15360);
	struct slots_config config = { 4, 0, SLICING_DYNAMIC };
	hm_auto(slots) *s = NULL;
	struct node_text node;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(slots_new(inv, &config, &s, &e), 0);
	node_text_from_slots(s, &config, &node);
	node.binding = NODE_BINDING_CLASSIC;
	node.pid = 1234;
	node_text_write(&node, &text);
	assert_string_equal(str_text(&text), sample);
}

static void test_parse(void **state)
{
	struct node_text node;
	struct hm_err e;

	(void)state;
	if (node_text_parse(sample, sizeof sample - 1, &node, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(node.slots_per_card, 4);
	assert_int_equal(node.slot_memory_mb, 0);
	assert_int_equal(node.slicing, SLICING_DYNAMIC);
	assert_int_equal(node.binding, NODE_BINDING_CLASSIC);
	assert_int_equal(node.pid, 1234);
	assert_int_equal(node.card_count, 2);
	assert_string_equal(node.cards[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
	assert_int_equal(node.cards[1].slots, 4);
	assert_int_equal(node.cards[1].slot_memory_bytes, 4026531840);
	assert_int_equal(node.cards[1].slot_cores, 25);
	for (size_t n = 0; n < sizeof sample - 2; n++)
		assert_int_equal(node_text_parse(sample, n, &node, &e), -HM_EPROTO);
}

static void test_bad_lines(void **state)
{
	static const struct {
		const char *line, *by;
		int code;
		const char *says;
	} rows[] = {
		{ "node 1", "node 9", -HM_EUNSUPPORTED, "version 9" },
		{ "slots_per_card=4", "slots_per_card=1001", -HM_EPROTO, "line 2: slots_per_card: not a number" },
		{ "slicing=dynamic", "slicing=both", -HM_EPROTO, "line 4: slicing: neither static nor dynamic" },
		{ "binding=classic", "binding=", -HM_EPROTO, "line 5: binding: neither late nor classic" },
		{ "pid=1234", "pid=2147483648", -HM_EPROTO, "line 6: pid" },
		{ "000 slots=4", "000 slots=0", -HM_EPROTO, "line 7: card: not \"<uuid>" },
		{ "000 slots=4", "000 slots=1001", -HM_EPROTO, "line 7: card" },
		{ "slot_cores=25", "slot_cores=101", -HM_EPROTO, "line 7: card" },
		{ "slot_cores=25", "slot_cores=25 ", -HM_EPROTO, "line 7: card" },
		{ "card=GPU-00000000-0000-0000-0000-000000000000", "card=GPU-00000000-0000-0000-0000-000000000001",
		  -HM_EPROTO, "line 8: card: GPU-00000000-0000-0000-0000-000000000001 stands twice" },
		{ "pid=1234", "pid=1\npid=2", -HM_EPROTO, "line 7: pid: stands twice" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const char *at = strstr(sample, rows[i].line);
		hm_auto_str text = { 0 };
		struct node_text node;
		struct hm_err e = { 0 };
		int r;

		assert_non_null(at);
		str_add_n(&text, sample, (size_t)(at - sample));
		str_add(&text, rows[i].by);
		str_add(&text, at + strlen(rows[i].line));
		r = node_text_parse(str_text(&text), text.n, &node, &e);
		if (r != rows[i].code || strstr(e.msg, rows[i].says) == NULL)
			fail_msg("%s: %d, \"%s\"", rows[i].by, r, e.msg);
	}
}

static void test_largest_fits(void **state)
{
	hm_auto(inventory) *inv = make_inventory(HM_MAX_CARDS, 15360000);
	struct slots_config config = { 1000, 0, SLICING_STATIC };
	hm_auto(slots) *s = NULL;
	struct node_text node;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < inv->count; i++)
		memset(inv->cards[i].uuid, 'a' + (int)i, sizeof inv->cards[i].uuid - 1);
	assert_int_equal(slots_new(inv, &config, &s, &e), 0);
	node_text_from_slots(s, &config, &node);
	node_text_write(&node, &text);
	assert_true(text.n <= NODE_TEXT_MAX_BYTES);
	assert_int_equal(node_text_parse(str_text(&text), text.n, &node, &e), 0);
	assert_int_equal(node.card_count, HM_MAX_CARDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_slots),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_largest_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
