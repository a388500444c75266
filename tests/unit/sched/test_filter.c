#include "sched/verbs/filter.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "harness/json_of.h"

static const char *bar;
static struct cluster *cluster;
static struct placer *placer;
static struct device_config *config;
static struct filter *filter;
static char told[64];

static const char *barred(void *arg)
{
	(void)arg;
	return bar;
}

static void note(void *arg, const struct filter_outcome *o)
{
	(void)arg;
	hm_fmt(told, sizeof told, "%s %s %zu/%zu", o->node != NULL ? o->node : "-", o->error != NULL ? "error" : "ok",
	       o->refused_count, o->candidates);
}

#define NODE(name, memory)                                                                                             \
	"{'metadata':{'name':'" name "','annotations':{'hami.io/node-nvidia-register':'[{\\'id\\':\\'GPU-" name        \
	"\\',\\'count\\':2,\\'devmem\\':" memory ",\\'devcore\\':100,\\'type\\':\\'NVIDIA A100\\',\\'mode\\':"         \
	"\\'hami-core\\',\\'health\\':true}]'}},'status':{'allocatable':{'nvidia.com/gpu':'2'}}}"
#define POD(uid, limits)                                                                                               \
	"'Pod':{'metadata':{'name':'p','namespace':'ns','uid':'" uid                                                   \
	"'},'spec':{'containers':[{'name':'c','resources':{'limits':{" limits "}}}]}}"
#define GPU(memory) "'nvidia.com/gpu':'1','nvidia.com/gpumem':'" memory "'"

static void add_node(const char *text)
{
	const struct node_rules rules = { "nvidia.com/gpu", NULL };
	hm_auto(cJSON) *tree = json_of(text);
	struct node_state *node;

	assert_int_equal(node_read(tree, &rules, cluster_texts(cluster), &node, NULL), 0);
	assert_int_equal(cluster_put_node(cluster, node, NULL), 0);
}

static int setup(void **state)
{
	static const char nothing[] = "nvidia: {}";
	struct filter_config c = { .barred = barred, .told = note };

	(void)state;
	bar = NULL;
	told[0] = '\0';
	assert_int_equal(device_config_parse(nothing, sizeof nothing - 1, "", NULL, &config, NULL), 0);
	cluster = cluster_new(1);
	placer = placer_new("binpack", "spread");
	c.cluster = cluster;
	c.placer = placer;
	c.pods = pod_rules_of(config);
	c.nodes = (struct node_rules) { "nvidia.com/gpu", NULL };
	assert_int_equal(filter_new(&c, &filter, NULL), 0);
	add_node(NODE("n1", "1000"));
	add_node(NODE("n2", "8000"));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	filter_free(filter);
	placer_free(placer);
	cluster_free(cluster);
	device_config_free(config);
	return 0;
}

/* The answer to a request in which ' stands for ". */
static const char *ask(const char *request)
{
	static struct str out;
	char *body = json_text_of(request);

	str_clear(&out);
	filter_answer(filter, body, strlen(body), 1000, &out);
	free(body);
	return str_text(&out);
}

#define ANSWER(nodes, names, failed, unresolvable, error)                                                              \
	"{\"Nodes\":" nodes ",\"NodeNames\":" names ",\"FailedNodes\":" failed                                         \
	",\"FailedAndUnresolvableNodes\":" unresolvable ",\"Error\":\"" error "\"}"
#define CHOSEN(name) ANSWER("null", "[\"" name "\"]", "null", "null", "")
#define FAILED(error) ANSWER("null", "null", "null", "null", error)

static void chosen_and_reserved(void **state)
{
	const struct holding *h;

	(void)state;
	assert_string_equal(ask("{" POD("u1", GPU("5000")) ",'NodeNames':['n1','n2','n3']}"), CHOSEN("n2"));
	h = cluster_find(cluster, "u1");
	assert_non_null(h);
	assert_string_equal(cluster_holding_node(h), "n2");
	assert_string_equal(told, "n2 ok 2/3");
	/* Another one finds what is left; the same one asks anew. */
	assert_string_equal(ask("{" POD("u2", GPU("5000")) ",'NodeNames':['n2']}"),
			    ANSWER("null", "null", "{\"n2\":\"1/1 CardInsufficientMemory\"}", "null", ""));
	assert_null(cluster_find(cluster, "u2"));
	assert_string_equal(ask("{" POD("u1", GPU("500")) ",'NodeNames':['n1']}"), CHOSEN("n1"));
	assert_string_equal(ask("{" POD("u2", GPU("5000")) ",'NodeNames':['n2']}"), CHOSEN("n2"));
	/* Taken back when nobody binds. */
	assert_int_equal(cluster_expire(cluster, 1000 + FILTER_RESERVE_MS - 1), 0);
	assert_int_equal(cluster_expire(cluster, 1000 + FILTER_RESERVE_MS), 2);
	assert_int_equal(filter_stats(filter)->placed, 3);
	assert_int_equal(filter_stats(filter)->nowhere, 1);
}

static void refused(void **state)
{
	(void)state;
	assert_string_equal(ask("{" POD("u1", GPU("9000")) ",'NodeNames':['n1','n2','n3']}"),
			    ANSWER("null", "null", "{}",
				   "{\"n3\":\"node unregistered\",\"n1\":\"1/1 CardInsufficientMemory\","
				   "\"n2\":\"1/1 CardInsufficientMemory\"}",
				   ""));
	assert_string_equal(told, "- ok 3/3");
	/* No candidates are not all nodes. */
	assert_string_equal(ask("{" POD("u1", GPU("500")) ",'NodeNames':[]}"),
			    ANSWER("null", "null", "{}", "null", ""));
	assert_null(cluster_find(cluster, "u1"));
}

static void without_cards(void **state)
{
	(void)state;
	bar = "not synced"; /* of no matter to them */
	assert_string_equal(ask("{" POD("u1", "'cpu':'1'") ",'NodeNames':['a','b']}"),
			    ANSWER("null", "[\"a\",\"b\"]", "null", "null", ""));
	assert_string_equal(ask("{" POD("u1", "'cpu':'1'") ",'NodeNames':null}"), FAILED(""));
	assert_string_equal(ask("{" POD("u1", "'cpu':'1'") ",'Nodes':{'items':[{'a':1},{'b':2}]}}"),
			    ANSWER("{\"metadata\":{},\"items\":[{\"a\":1},{\"b\":2}]}", "null", "{}", "null", ""));
	assert_string_equal(told, "");
}

static void errors(void **state)
{
	(void)state;
	assert_string_equal(ask(""), FAILED("EOF"));
	assert_string_equal(ask("{}"), FAILED("extender args missing pod"));
	assert_string_equal(ask("{" POD("u1", GPU("500")) "}"),
			    FAILED("extender args have neither NodeNames nor Nodes"));
	assert_string_equal(ask("{" POD("", GPU("500")) ",'NodeNames':['n1']}"), FAILED("the pod has no uid"));
	assert_non_null(strstr(ask("{" POD("u1", GPU("-5")) ",'NodeNames':['n1']}"), "\"Error\":\"container c: "));
	assert_string_equal(
		ask("{'Pod':{'metadata':{'name':'p','uid':'u1','annotations':"
		    "{'hami.io/device-scoring-weights':'slot=1,core=1,mem=1'}},'spec':{'containers':[{'name':'c',"
		    "'resources':{'limits':{'nvidia.com/gpu':'1'}}}]}},'NodeNames':['n1']}"),
		FAILED("calcScore failed invalid hami.io/device-scoring-weights annotation "
		       "\\\"slot=1,core=1,mem=1\\\": unknown weight \\\"mem\\\" for pod p"));
	bar = "not the leader";
	assert_string_equal(ask("{" POD("u1", GPU("500")) ",'NodeNames':['n1']}"), FAILED("not the leader"));
	assert_string_equal(told, "- error 0/0");
	assert_null(cluster_find(cluster, "u1"));
}

/* A node that comes with the request, beside one that we know: its load counts, and nothing is kept. */
static void what_if(void **state)
{
	static const char unknown[] = "{'metadata':{'name':'new','annotations':{'hami.io/node-nvidia-register':"
				      "'[{\\'id\\':\\'GPU-x\\',\\'count\\':2,\\'devmem\\':6000,\\'devcore\\':100,"
				      "\\'type\\':\\'NVIDIA A100\\',\\'mode\\':\\'hami-core\\',\\'health\\':true}]'}},"
				      "'status':{'allocatable':{'nvidia.com/gpu':'2'}}}";
	char *node hm_auto_heap = json_text_of(unknown);
	hm_auto_str request = { 0 };
	const char *answer;

	(void)state;
	assert_string_equal(ask("{" POD("u1", GPU("7000")) ",'NodeNames':['n2']}"), CHOSEN("n2"));
	str_addf(&request, "{%s,'Nodes':{'items':[{'metadata':{'name':'n2'}},{'metadata':{'name':'bare'}},%s]}}",
		 POD("u2", GPU("5000")), unknown);
	answer = ask(str_text(&request));
	assert_non_null(strstr(answer, "\"NodeNames\":null"));
	assert_non_null(strstr(answer, "\"Error\":\"\""));
	assert_non_null(strstr(answer, "\"bare\":\"node unregistered\""));
	assert_int_equal(strncmp(answer, "{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"new\"", 53),
			 0);
	assert_non_null(strstr(answer, node));
	assert_null(cluster_find(cluster, "u2"));
	assert_null(cluster_node(cluster, "new"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chosen_and_reserved, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(without_cards, setup, teardown),
		cmocka_unit_test_setup_teardown(errors, setup, teardown),
		cmocka_unit_test_setup_teardown(what_if, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
