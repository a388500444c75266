/* The texts of errors, where HAMi v2.10.0 was run, are those that it answered. */
#include <stdlib.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"
#include "sched/extender/answer.h"
#include "sched/extender/args.h"

struct body {
	char *text;
	size_t n;
};

static struct body body_of(const char *text)
{
	struct body b = { malloc(strlen(text) + 1), strlen(text) };

	memcpy(b.text, text, b.n);
	return b;
}

/* "pod/n1,n2,.../node,node,...": what was read, or the error. */
static void read_args(const char *text, struct str *said)
{
	struct body b = body_of(text);
	struct extender_args a;
	struct hm_err e;

	str_clear(said);
	if (extender_args_read(b.text, b.n, &a, &e) < 0) {
		str_add(said, e.msg);
	} else {
		const struct cJSON *name = cJSON_GetObjectItemCaseSensitive(a.pod, "name");

		str_addf(said, "%s/", cJSON_IsString(name) ? name->valuestring : "");
		str_add(said, a.has_names ? "" : "-");
		for (size_t i = 0; i < a.name_count; i++)
			str_addf(said, "%s,", a.names[i]);
		str_add(said, a.has_nodes ? "/" : "/-");
		for (size_t i = 0; i < a.node_count; i++)
			str_addf(said, "%.*s,", (int)a.nodes[i].n, a.nodes[i].p);
	}
	extender_args_fini(&a);
	free(b.text);
}

static void test_args(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		/* As HAMi answers. */
		{ "", "EOF" },
		{ "{", "unexpected EOF" },
		{ "[]", "json: cannot unmarshal array into Go value of type v1.ExtenderArgs" },
		{ "{}", "extender args missing pod" },
		{ "{\"NodeNames\":[\"n1\"]}", "extender args missing pod" },
		{ "{\"Pod\":{},\"Nodes\":null,\"NodeNames\":null}", "/-/-" },
		{ "{\"Pod\":{},\"NodeNames\":[]}", "//-" },
		{ "{\"Pod\":{},\"Nodes\":{\"items\":[]}}", "/-/" },
		{ "{\"pod\":{\"name\":\"p\"},\"nodenames\":[\"n1\"],\"nodes\":null}", "p/n1,/-" },
		{ "{\"Pod\":{\"name\":\"p\"},\"NodeNames\":[\"n1\"],\"Future\":[{\"x\":1}]}", "p/n1,/-" },
		{ "{\"Pod\":{},\"NodeNames\":[\"n1\",\"n1\"]}", "/n1,n1,/-" },
		/* As Go's decoder would. */
		{ "null", "extender args missing pod" },
		{ "{\"Pod\":null}", "extender args missing pod" },
		{ "{\"Pod\":[]}", "json: cannot unmarshal array into Go struct field ExtenderArgs.Pod of type v1.Pod" },
		{ "{\"NodeNames\":\"n1\"}",
		  "json: cannot unmarshal string into Go struct field ExtenderArgs.NodeNames of type []string" },
		{ "{\"NodeNames\":[1]}",
		  "json: cannot unmarshal number into Go struct field ExtenderArgs.NodeNames of type string" },
		{ "{\"Nodes\":[]}",
		  "json: cannot unmarshal array into Go struct field ExtenderArgs.Nodes of type v1.NodeList" },
		{ "{\"Nodes\":{\"items\":[1]}}",
		  "json: cannot unmarshal number into Go struct field ExtenderArgs.Nodes.items of type v1.Node" },
		{ "{\"Pod\":{},\"NodeNames\":[\"a\",null]}", "/a,,/-" },
		/* The last one counts. */
		{ "{\"Pod\":{\"name\":\"p\"},\"POD\":{\"name\":\"q\"},\"NodeNames\":[\"a\",\"b\"],\"nodeNames\":[\"c\"]"
		  "}",
		  "q/c,/-" },
		{ "{\"Pod\":{},\"NodeNames\":[\"a\"],\"nodeNames\":null}", "/-/-" },
		{ "{\"Pod\":{},\"NodeNames\":[\"a\\u002db\"]}", "/a-b,/-" },
		{ "{\"Nodes\":{\"metadata\":{},\"items\":[{\"a\":1},{\"b\":[2]}],\"kind\":\"NodeList\"},\"Pod\":{}}",
		  "/-/{\"a\":1},{\"b\":[2]}," },
		{ "{\"Pod\":{},\"NodeNames\":[\"a\" \"b\"]}", "JSON: byte 27: a comma is missing" },
		{ "{\"Pod\":{},\"Nodes\":{\"items\":[{]}}", "JSON: byte 29: a key is wanted here" },
		{ "{\"Pod\":{}} {}", "JSON: byte 11: something stands behind the value" },
	};
	hm_auto_str said = { 0 };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		read_args(cases[i].text, &said);
		if (strcmp(str_text(&said), cases[i].says) != 0)
			fail_msg("%s: \"%s\"", cases[i].text, str_text(&said));
	}
}

/* One more than there may be, and a name that is no node's. */
static void test_bounds(void **state)
{
	hm_auto_str text = { 0 }, said = { 0 };
	char *name;

	(void)state;
	str_add(&text, "{\"NodeNames\":[\"\"");
	for (unsigned i = 0; i < EXTENDER_MAX_NODES; i++)
		str_add(&text, ",\"\"");
	str_add(&text, "],\"Pod\":{}}");
	read_args(str_text(&text), &said);
	assert_string_equal(str_text(&said), "ExtenderArgs.NodeNames: has more than 65536");
	str_clear(&text);
	str_add(&text, "{\"Pod\":{},\"NodeNames\":[\"");
	for (unsigned i = 0; i < 254; i++)
		str_addc(&text, 'a');
	str_add(&text, "\"]}");
	read_args(str_text(&text), &said);
	assert_string_equal(str_text(&said), "ExtenderArgs.NodeNames: a name is longer than 253 bytes");
	name = strstr(text.p, "aa");
	memmove(name, name + 1, strlen(name));
	read_args(str_text(&text), &said);
	assert_int_equal(said.n, strlen("/,/-") + 253);
}

static void test_binding(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "EOF" },
		{ "{}", "|||" },
		{ "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":\"n1\"}", "p|ns|u|n1" },
		{ "{\"podname\":\"p\",\"podnamespace\":null,\"X\":{},\"node\":\"\"}", "p|||" },
		{ "[]", "json: cannot unmarshal array into Go value of type v1.ExtenderBindingArgs" },
		{ "{\"Node\":1}",
		  "json: cannot unmarshal number into Go struct field ExtenderBindingArgs.Node of type string" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct body b = body_of(cases[i].text);
		struct extender_binding a;
		hm_auto_str said = { 0 };
		struct hm_err e;

		if (extender_binding_read(b.text, b.n, &a, &e) < 0)
			str_add(&said, e.msg);
		else
			str_addf(&said, "%s|%s|%s|%s", a.pod_name, a.pod_namespace, a.pod_uid, a.node);
		assert_string_equal(str_text(&said), cases[i].says);
		free(b.text);
	}
}

static void test_answers(void **state)
{
	static const char *const names[] = { "n1", "n\"2" };
	static const struct extender_refusal refusals[] = {
		{ "n1", "2/2 CardInsufficientMemory", false },
		{ "n2", "1/1 CardTypeMismatch", true },
		{ "n3", "node unregistered", false },
	};
	static const struct piece node = { "{\"metadata\":{\"name\":\"n1\"}}", 26 };
	hm_auto_str out = { 0 };

	(void)state;
	extender_add_names(&out, names, 2);
	assert_string_equal(str_text(&out), "{\"Nodes\":null,\"NodeNames\":[\"n1\",\"n\\\"2\"],\"FailedNodes\":null,"
					    "\"FailedAndUnresolvableNodes\":null,\"Error\":\"\"}");
	str_clear(&out);
	extender_add_names(&out, NULL, 0);
	assert_string_equal(str_text(&out), "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
					    "\"FailedAndUnresolvableNodes\":null,\"Error\":\"\"}");
	str_clear(&out);
	extender_add_refusals(&out, refusals, 3);
	assert_string_equal(str_text(&out),
			    "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{\"n1\":\"2/2 CardInsufficientMemory\","
			    "\"n3\":\"node unregistered\"},\"FailedAndUnresolvableNodes\":{\"n2\":\"1/1 "
			    "CardTypeMismatch\"},\"Error\":\"\"}");
	str_clear(&out);
	extender_add_refusals(&out, NULL, 0);
	assert_string_equal(str_text(&out), "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},"
					    "\"FailedAndUnresolvableNodes\":null,\"Error\":\"\"}");
	str_clear(&out);
	extender_add_nodes(&out, &node, 1, refusals, 1);
	assert_string_equal(
		str_text(&out),
		"{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"n1\"}}]},\"NodeNames\":null,"
		"\"FailedNodes\":{\"n1\":\"2/2 CardInsufficientMemory\"},"
		"\"FailedAndUnresolvableNodes\":null,\"Error\":\"\"}");
	str_clear(&out);
	extender_add_error(&out, "calcScore failed");
	assert_string_equal(str_text(&out), "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
					    "\"FailedAndUnresolvableNodes\":null,\"Error\":\"calcScore failed\"}");
	str_clear(&out);
	extender_add_bound(&out, "");
	assert_string_equal(str_text(&out), "{\"Error\":\"\"}");
}

static int read_and_answer(void *arg)
{
	static const char text[] = "{\"Pod\":{},\"NodeNames\":[\"a\",\"b\",\"c\",\"d\",\"e\"],"
				   "\"Nodes\":{\"items\":[{},{},{},{},{}]}}";
	char body[sizeof text];
	struct extender_args a;
	hm_auto_str out = { 0 };
	struct hm_err e;
	int r;

	(void)arg;
	memcpy(body, text, sizeof text);
	r = extender_args_read(body, sizeof text - 1, &a, &e);
	if (r == 0) {
		extender_add_names(&out, a.names, a.name_count);
		extender_add_nodes(&out, a.nodes, a.node_count, NULL, 0);
		r = str_failed(&out) ? -HM_ENOMEM : 0;
	}
	extender_args_fini(&a);
	return r;
}

static void test_without_memory(void **state)
{
	(void)state;
	sweep_check("read and answer", read_and_answer, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_without_memory), cmocka_unit_test(test_args),
					    cmocka_unit_test(test_bounds), cmocka_unit_test(test_binding),
					    cmocka_unit_test(test_answers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
