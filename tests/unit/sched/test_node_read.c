#include "sched/view/node_read.h"

#include <time.h>

#include "base/str.h"
#include "hami/register_text.h"
#include "hami/score_text.h"
#include "harness/json_of.h"
#include "harness/sweep.h"
#include "io/json_write.h"

static const struct node_rules rules = { "nvidia.com/gpu", NULL };

#define NODE(annotations, allocatable)                                                                                 \
	"{'metadata':{'name':'n1','labels':{'pool':'a','zone':'z1'},'annotations':{" annotations                       \
	"}},'status':{'allocatable':{" allocatable "}}}"
#define REGISTER(cards) "'hami.io/node-nvidia-register':'[" cards "]'"
#define CARD(id, more)                                                                                                 \
	"{\\'id\\':\\'" id "\\',\\'count\\':10,\\'devmem\\':81920,\\'devcore\\':100,"                                  \
	"\\'type\\':\\'NVIDIA A100\\',\\'mode\\':\\'hami-core\\',\\'health\\':true" more "}"
#define LATE ",\\'custominfo\\':{\\'binding\\':\\'late\\'}"
#define OFFERED "'nvidia.com/gpu':'20'"

static void cards_as_registered(void **state)
{
	hm_auto(cJSON) *tree = json_of(NODE(
		REGISTER(CARD(
			"GPU-a",
			",\\'numa\\':1,\\'index\\':3") ",{\\'id\\':\\'GPU-b\\',\\'count\\':7,"
						       "\\'devmem\\':40960,\\'devcore\\':100,\\'type\\':\\'NVIDIA "
						       "A100\\',\\'mode\\':\\'mig\\',"
						       "\\'migProfiles\\':[{\\'name\\':\\'1g.5gb\\',\\'memoryMB\\':"
						       "4864,\\'core\\':14,\\'sliceCount\\':1,"
						       "\\'placements\\':[{\\'start\\':0,\\'size\\':1},{\\'start\\':1,"
						       "\\'size\\':1}]}]}") ","
									    "'hami.io/"
									    "node-nvidia-score':'[{\\'uuid\\':\\'GPU-"
									    "a\\',\\'score\\':{\\'GPU-x\\':7,\\'GPU-"
									    "b\\':150}},{"
									    "\\'uuid\\':\\'GPU-y\\',\\'score\\':{"
									    "\\'GPU-a\\':9}}]',"
									    "'hami.io/device-cordon':'GPU-x, GPU-b'",
		OFFERED));
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = NULL;

	(void)state;
	assert_int_equal(node_read(tree, &rules, texts, &n, NULL), 0);
	assert_string_equal(n->name, "n1");
	assert_int_equal(n->count, 2);
	assert_string_equal(n->cards[0].uuid, "GPU-a");
	assert_int_equal(n->cards[0].count, 10);
	assert_int_equal(n->cards[0].memory_mib, 81920);
	assert_int_equal(n->cards[0].cores, 100);
	assert_int_equal(n->cards[0].numa, 1);
	assert_int_equal(n->cards[0].index, 3);
	assert_string_equal(n->cards[0].type, "NVIDIA A100");
	assert_true(n->cards[0].healthy);
	assert_false(n->cards[0].cordoned);
	assert_false(n->cards[1].healthy); /* not said */
	assert_true(n->cards[1].cordoned);
	assert_true(n->cards[1].mig);
	assert_int_equal(n->cards[1].profile_count, 1);
	assert_string_equal(n->profiles[n->cards[1].first_profile].name, "1g.5gb");
	assert_int_equal(n->profiles[n->cards[1].first_profile].memory_mib, 4864);
	assert_int_equal(n->profiles[n->cards[1].first_profile].cores, 14);
	assert_int_equal(n->profiles[n->cards[1].first_profile].place_count, 2);
	assert_int_equal(node_state_pair_score(n, 0, 1), 150);
	assert_false(n->late_binding);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* A node may write its annotations again and again: as much as fits in, in the order that is looked up slowest, is read
 * in about the time that reading it takes anyhow. */
static void many_cards_take_no_longer_than_their_text(void **state)
{
	enum { CARDS = 1000, PAIRS = 120 };
	hm_auto_str cards = { 0 }, scores = { 0 }, text = { 0 };
	uint64_t whole = UINT64_MAX, parts = UINT64_MAX;

	(void)state;
	for (unsigned i = 0; i < CARDS; i++)
		str_addf(&cards,
			 "%s{\"id\":\"%u\",\"count\":1,\"devmem\":1,\"devcore\":1,\"type\":\"NVIDIA\",\"health\":true}",
			 i > 0 ? "," : "[", i);
	str_addc(&cards, ']');
	for (unsigned i = 0; i < CARDS / 4; i++) {
		str_addf(&scores, "%s{\"uuid\":\"%u\",\"score\":{\"0\":1", i > 0 ? "," : "[", CARDS - 1 - i);
		for (unsigned k = 1; k < PAIRS; k++)
			str_addf(&scores, ",\"%u\":1", CARDS - k);
		str_add(&scores, "}}");
	}
	str_addc(&scores, ']');
	str_add(&text, "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"hami.io/node-nvidia-register\":");
	json_add_text(&text, str_text(&cards));
	str_add(&text, ",\"hami.io/node-nvidia-score\":");
	json_add_text(&text, str_text(&scores));
	str_add(&text, "}},\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"1\"}}}");
	for (unsigned times = 0; times < 5; times++) {
		hm_auto(cJSON) *tree = NULL;
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = NULL;
		hm_auto_node_register r = { 0 };
		hm_auto_node_score s = { 0 };
		struct hm_err e;
		uint64_t began = now_ns();

		assert_int_equal(json_parse(str_text(&text), text.n, &tree, &e), 0);
		assert_int_equal(register_text_parse(str_text(&cards), &r, &e), 0);
		assert_int_equal(score_text_parse(str_text(&scores), &s, &e), 0);
		parts = HM_MIN(parts, now_ns() - began);
		began = now_ns();
		assert_int_equal(node_read(tree, &rules, texts, &n, &e), 0);
		whole = HM_MIN(whole, now_ns() - began);
		assert_int_equal(n->count, CARDS);
		assert_int_equal(node_state_pair_score(n, CARDS - 1, 0), 1);
	}
	if (whole > 6 * parts)
		fail_msg("%llu us, and its texts %llu us", (unsigned long long)whole / 1000,
			 (unsigned long long)parts / 1000);
}

static void late_only_where_every_card_says_so(void **state)
{
	static const struct {
		const char *node;
		bool late;
	} rows[] = {
		{ NODE(REGISTER(CARD("GPU-a", LATE) "," CARD("GPU-b", LATE)), OFFERED), true },
		{ NODE(REGISTER(CARD("GPU-a", LATE) "," CARD("GPU-b", "")), OFFERED), false },
		{ NODE(REGISTER(CARD("GPU-a", "")), OFFERED), false },
	};
	hm_auto(texts) *texts = texts_new();

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *tree = json_of(rows[i].node);
		hm_auto(node_state) *n = NULL;

		assert_int_equal(node_read(tree, &rules, texts, &n, NULL), 0);
		assert_int_equal(n->late_binding, rows[i].late);
	}
}

static void cpu_and_memory_are_the_allocatable(void **state)
{
	static const struct {
		const char *allocatable;
		int64_t cpu_milli, host_mib;
	} rows[] = {
		{ OFFERED, -1, -1 },
		{ OFFERED ",'cpu':'95500m','memory':'1056297124Ki'", 95500, 1031540 },
		{ OFFERED ",'cpu':96,'memory':'1'", 96000, 0 },
		{ OFFERED ",'cpu':'many','memory':'-1'", -1, 0 },
	};
	hm_auto(texts) *texts = texts_new();
	uint64_t print = 0;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };
		hm_auto(cJSON) *tree = NULL;
		hm_auto(node_state) *n = NULL;

		str_addf(&text, NODE(REGISTER(CARD("GPU-a", "")), "%s"), rows[i].allocatable);
		tree = json_of(str_text(&text));
		assert_int_equal(node_read(tree, &rules, texts, &n, NULL), 0);
		assert_int_equal(n->cpu_milli, rows[i].cpu_milli);
		assert_int_equal(n->host_mib, rows[i].host_mib);
		/* They are no reason to make the cards anew. */
		assert_true(i == 0 || node_read_print(tree, &rules) == print);
		print = node_read_print(tree, &rules);
	}
}

static void nodes_without_cards(void **state)
{
	static const struct {
		const char *node, *selector;
		int code;
		const char *msg;
	} rows[] = {
		{ "{}", NULL, HM_EPROTO, "a node without a name" },
		{ NODE("", OFFERED), NULL, HM_ENOTFOUND, "has no hami.io/node-nvidia-register" },
		{ NODE(REGISTER(""), OFFERED), NULL, HM_ENOTFOUND, "hami.io/node-nvidia-register has no device" },
		{ NODE("'hami.io/node-nvidia-register':''", OFFERED), NULL, HM_EPROTO, NULL },
		{ NODE("'hami.io/node-nvidia-register':'{'", OFFERED), NULL, HM_EPROTO, NULL },
		{ NODE(REGISTER(CARD("GPU-a", "") "," CARD("GPU-a", "")), OFFERED), NULL, HM_EINVAL,
		  "hami.io/node-nvidia-register: card GPU-a is there twice" },
		{ NODE(REGISTER(CARD("GPU-a", "")) ",'hami.io/node-nvidia-score':'x'", OFFERED), NULL, HM_EPROTO,
		  NULL },
		/* The plugin is away: the kubelet says 0. */
		{ NODE(REGISTER(CARD("GPU-a", "")), "'nvidia.com/gpu':'0'"), NULL, HM_ENOTFOUND,
		  "the kubelet offers no nvidia.com/gpu: its device plugin is away" },
		{ NODE(REGISTER(CARD("GPU-a", "")), "'cpu':'8'"), NULL, HM_ENOTFOUND,
		  "the kubelet offers no nvidia.com/gpu: its device plugin is away" },
		{ NODE(REGISTER(CARD("GPU-a", "")), "'nvidia.com/gpu':'x'"), NULL, HM_ENOTFOUND, NULL },
		{ NODE(REGISTER(CARD("GPU-a", "")), OFFERED), "pool=b", HM_ENOTFOUND, "is not selected by its labels" },
		{ NODE(REGISTER(CARD("GPU-a", "")), OFFERED), "pool=a,gone=1", HM_ENOTFOUND, NULL },
		{ NODE(REGISTER(CARD("GPU-a", "")), OFFERED), "pool=", HM_ENOTFOUND, NULL },
		{ NODE(REGISTER(CARD("GPU-a", "")), OFFERED), "pool=a,zone==z1", 0, NULL },
		{ NODE(REGISTER(CARD("GPU-a", "")), OFFERED), "", 0, NULL },
	};
	hm_auto(texts) *texts = texts_new();

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct node_rules r = { "nvidia.com/gpu", rows[i].selector };
		hm_auto(cJSON) *tree = json_of(rows[i].node);
		hm_auto(node_state) *n = NULL;
		struct hm_err e = { 0 };

		if (node_read(tree, &r, texts, &n, &e) != -rows[i].code)
			fail_msg("row %zu: %s", i, e.msg);
		assert_true((n != NULL) == (rows[i].code == 0));
		if (rows[i].msg != NULL)
			assert_string_equal(e.msg, rows[i].msg);
	}
}

/* Since HAMi v2.8 no plugin answers it: what older ones and HAMi's scheduler left there says nothing. */
static void whatever_the_handshake_says(void **state)
{
	static const char *const values[] = { "", "Requesting_2020-01-01 00:00:00", "Requesting_nonsense",
					      "Deleted_2020-01-01 00:00:00",
					      "Reported 2020-01-23 04:30:04.434037031 +0000 UTC m=+1.7" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(values); i++) {
		hm_auto(cJSON) *tree = json_of(NODE(REGISTER(CARD("GPU-a", "")), OFFERED));
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = NULL;

		cJSON_AddStringToObject(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "metadata"), "annotations"),
					"hami.io/node-handshake", values[i]);
		assert_int_equal(node_read(tree, &rules, texts, &n, NULL), 0);
		assert_int_equal(n->count, 1);
		assert_true(n->cards[0].healthy);
	}
}

static void selectors(void **state)
{
	static const char *const good[] = { "a=b", "a==b", "a=", "a=b,c/d=e" };
	static const char *const bad[] = { "a", "=b", "a=b,,c=d", "a in (b)" };
	struct hm_err e;

	(void)state;
	assert_int_equal(node_selector_check(NULL, &e), 0);
	assert_int_equal(node_selector_check("", &e), 0);
	for (size_t i = 0; i < HM_COUNT(good); i++)
		assert_int_equal(node_selector_check(good[i], &e), 0);
	for (size_t i = 0; i < HM_COUNT(bad); i++)
		assert_int_equal(node_selector_check(bad[i], &e), -HM_EINVAL);
}

static uint64_t print_of(const char *text, const char *selector)
{
	const struct node_rules r = { "nvidia.com/gpu", selector };
	hm_auto(cJSON) *tree = json_of(text);

	return node_read_print(tree, &r);
}

static void the_print_changes_with_the_cards_alone(void **state)
{
	const char *plain = NODE(REGISTER(CARD("GPU-a", "")), OFFERED);

	(void)state;
	assert_true(print_of(plain, NULL) ==
		    print_of(NODE(REGISTER(CARD("GPU-a", "")) ",'hami.io/device-cordon':'GPU-a','x':'y'",
				  "'nvidia.com/gpu':'9','cpu':'1'"),
			     NULL));
	assert_true(print_of(plain, NULL) != print_of(NODE(REGISTER(CARD("GPU-b", "")), OFFERED), NULL));
	assert_true(print_of(plain, NULL) !=
		    print_of(NODE(REGISTER(CARD("GPU-a", "")) ",'hami.io/node-nvidia-score':'[]'", OFFERED), NULL));
	assert_true(print_of(plain, NULL) != print_of(NODE(REGISTER(CARD("GPU-a", "")), ""), NULL));
	assert_true(print_of(plain, NULL) != print_of(plain, "pool=b"));
	assert_true(print_of(plain, NULL) == print_of(plain, "pool=a"));
}

static int read_one(void *arg)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = NULL;

	return texts == NULL ? -1 : node_read(arg, &rules, texts, &n, NULL);
}

static void memory_runs_out(void **state)
{
	hm_auto(cJSON) *tree = json_of(NODE(REGISTER(CARD("GPU-a", "") "," CARD("GPU-b", "")), OFFERED));

	(void)state;
	sweep_check("node", read_one, tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cards_as_registered),
		cmocka_unit_test(many_cards_take_no_longer_than_their_text),
		cmocka_unit_test(late_only_where_every_card_says_so),
		cmocka_unit_test(nodes_without_cards),
		cmocka_unit_test(whatever_the_handshake_says),
		cmocka_unit_test(selectors),
		cmocka_unit_test(the_print_changes_with_the_cards_alone),
		cmocka_unit_test(cpu_and_memory_are_the_allocatable),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
