#include "hami/node_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static unsigned warnings;
static char last_warning[512];

static void count_warning(const char *line, size_t n, void *arg)
{
	(void)arg;
	warnings++;
	snprintf(last_warning, sizeof last_warning, "%.*s", (int)n, line);
}

static int setup(void **state)
{
	warnings = 0;
	log_set_sink(count_warning, NULL);
	return temp_setup(state);
}

static int teardown(void **state)
{
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

/* What device-config.yaml said. */
static const char yaml[] = "nvidia:\n  deviceSplitCount: 10\n  deviceMemoryScaling: 1.5\n  enableNumaTopology: true\n";

/* Node n1's configuration by the file; *c is NULL where it was refused. */
static struct device_config *merge(const char *json, struct node_config **c, struct hm_err *e)
{
	hm_auto(texts) *told = texts_new();
	struct device_config *d = NULL;

	assert_int_equal(device_config_parse(yaml, sizeof yaml - 1, "d", told, &d, e), 0);
	if (node_config_parse(json, strlen(json), "c", "n1", told, d, c, e) < 0) {
		assert_null(*c);
		assert_int_equal(d->split_count, 10);
	}
	return d;
}

#define MERGE(json)                                                                                                    \
	hm_auto(node_config) *c = NULL;                                                                                \
	hm_auto(device_config) *d = merge(json, &c, NULL);                                                             \
	assert_non_null(c)

/* Reference, appendix E 8. */
static void zero_and_false_override_nothing(void **state)
{
	static const struct {
		const char *entry;
		unsigned split;
		bool numa;
		unsigned warnings;
	} rows[] = {
		{ "\"devicesplitcount\":0", 10, true, 1 },          { "\"devicesplitcount\":3", 3, true, 0 },
		{ "\"enablenumatopology\":false", 10, true, 1 },    { "\"enablenumatopology\":true", 10, true, 0 },
		{ "\"preconfigureddevicememory\":0", 10, true, 0 }, /* nothing that it would have changed */
		{ "\"devicesplitcount\":null", 10, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char json[200];

		warnings = 0;
		snprintf(json, sizeof json, "{\"nodeconfig\":[{\"name\":\"n1\",%s}]}", rows[i].entry);
		{
			MERGE(json);
			assert_int_equal(d->split_count, rows[i].split);
			assert_int_equal(d->numa_topology, rows[i].numa);
			assert_int_equal(warnings, rows[i].warnings);
		}
	}
}

static void an_entry_of_this_node_counts(void **state)
{
	MERGE("{ \"nodeconfig\": [\n"
	      "  { \"name\": \"n2\", \"devicesplitcount\": 99, \"filterdevices\": {\"uuid\": [\"x\"]} },\n"
	      "\t{ \"name\": \"n1\", \"operatingmode\": \"mps\", \"devicesplitcount\": 3, \"devicememoryscaling\": 2,\n"
	      "    \"devicecorescaling\": 2.3, \"preconfigureddevicememory\": 500, \"libcudaloglevel\": \"3\",\n"
	      "    \"migstrategy\": \"none\", \"filterdevices\": { \"uuid\": [\"GPU-1\", \"GPU-2\"], \"index\": [0, 7] "
	      "},\n"
	      "    \"enablegetpreferredallocation\": true } ] }\n");

	(void)state;
	assert_true(c->found);
	assert_string_equal(c->operating_mode, "mps");
	assert_int_equal(d->split_count, 3);
	assert_true(d->memory_scaling == 2 && d->core_scaling == 2.3);
	assert_int_equal(d->preconfigured_memory_mib, 500);
	assert_string_equal(d->libcuda_log_level, "3");
	assert_int_equal(c->filter_uuid_count, 2);
	assert_string_equal(c->filter_uuids[1], "GPU-2");
	assert_int_equal(c->filter_index_count, 2);
	assert_int_equal(c->filter_indices[1], 7);
	assert_int_equal(warnings, 0);
}

static void no_entry_changes_nothing(void **state)
{
	static const char *const texts[] = { "{}", "{\"nodeconfig\":[]}", "{\"nodeconfig\":null}",
					     ("{\"nodeconfig\":[{\"name\":\"N1\",\"devicesplitcount\":3},"
					      "{\"devicesplitcount\":4}]}") };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		MERGE(texts[i]);
		assert_false(c->found);
		assert_string_equal(c->operating_mode, "");
		assert_int_equal(d->split_count, 10);
	}
}

static void several_entries_in_their_order(void **state)
{
	MERGE("{\"nodeconfig\":[{\"name\":\"n1\",\"devicesplitcount\":3,\"operatingmode\":\"mig\","
	      "\"enablegetpreferredallocation\":true,\"filterdevices\":{\"index\":[1]}},"
	      "{\"name\":\"n1\",\"devicesplitcount\":5,\"devicememoryscaling\":3,\"filterdevices\":{\"uuid\":[]}}]}");

	(void)state;
	assert_int_equal(d->split_count, 5);
	assert_true(d->memory_scaling == 3);
	assert_string_equal(c->operating_mode, "mig");
	assert_int_equal(c->filter_index_count, 1);
}

static void keys_count_in_any_case(void **state)
{
	MERGE("{\"NodeConfig\":[{\"Name\":\"n1\",\"deviceSplitCount\":3,\"filterDevices\":{\"UUID\":[\"GPU-1\"]},"
	      "\"enableNumaTopology\":false,\"colour\":1}]}");

	(void)state;
	assert_int_equal(d->split_count, 3);
	assert_int_equal(c->filter_uuid_count, 1);
	assert_int_equal(warnings, 2); /* the false, the unknown key */
}

static void bad_files_name_line_and_reason(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		/* golden: bad-config-json */
		{ "{\"nodeconfig\":[{\"name\":\"bad-config-json\",\"operatingmode\":\"mps\",\"libcudaloglevel\":1}]}",
		  "line 1: nodeconfig[0].libcudaloglevel: 1 is not a text" },
		{ "{\n\"nodeconfig\": [\n\n{\"name\":\"other\",\"devicesplitcount\":-1}]}",
		  "line 4: nodeconfig[0].devicesplitcount: -1 is not a number between 0 and 1000" },
		{ "{\"nodeconfig\":[{\"name\":\"n2\",\"filterdevices\":{\"index\":[\"0\"]}}]}",
		  "line 1: nodeconfig[0].filterdevices.index[0]: \"0\" is not a number between 0 and 2147483647" },
		{ "{\"nodeconfig\":[{\"name\":\"n1\",\"filterdevices\":[]}]}",
		  "line 1: nodeconfig[0].filterdevices: is no object" },
		{ "{\"nodeconfig\":[{\"name\":\"n1\",\"operatingmode\":\"a b\"}]}",
		  "line 1: nodeconfig[0].operatingmode: \"a b\" is not a plain word" },
		{ "{\"nodeconfig\":[1]}", "line 1: nodeconfig[0]: is no object" },
		{ "{\"nodeconfig\":{}}", "line 1: nodeconfig: is no list" },
		{ "[]", "line 1: is no object" },
		/* JSON, and not YAML: a repeated key */
		{ "{\"nodeconfig\":[{\"name\":\"n1\",\"name\":\"n2\",\"devicesplitcount\":true}]}",
		  "nodeconfig[0].devicesplitcount: true is not a number between 0 and 1000" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(node_config) *c = NULL;
		struct hm_err e = { 0 };
		hm_auto(device_config) *d = merge(rows[i].text, &c, &e);

		assert_non_null(d);
		assert_null(c);
		assert_string_equal(e.msg, rows[i].want);
	}
	{
		/* YAML, and not JSON */
		hm_auto(node_config) *c = NULL;
		struct hm_err e = { 0 };
		hm_auto(device_config) *d = merge("{nodeconfig: []}", &c, &e);

		assert_non_null(d);
		assert_int_equal(e.code, HM_EPROTO);
		assert_non_null(strstr(e.msg, "line 1"));
	}
}

/* A list of a list is a good value of no key. */
static void every_key_is_looked_at(void **state)
{
	static const char *const keys[] = {
		"name",
		"operatingmode",
		"devicesplitcount",
		"devicememoryscaling",
		"devicecorescaling",
		"preconfigureddevicememory",
		"libcudaloglevel",
		"enablenumatopology",
		"migstrategy",
		"filterdevices",
		"enablegetpreferredallocation",
	};
	char text[128], want[128];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(keys); i++) {
		hm_auto(node_config) *c = NULL;
		struct hm_err e = { 0 };

		snprintf(text, sizeof text, "{\"nodeconfig\": [\n{\n\"%s\": [[]]}]}", keys[i]);
		snprintf(want, sizeof want, "line 3: nodeconfig[0].%s: ", keys[i]);
		device_config_free(merge(text, &c, &e));
		assert_null(c);
		if (strncmp(e.msg, want, strlen(want)) != 0)
			fail_msg("%s: \"%s\"", keys[i], e.msg);
	}
}

static void the_file_is_named(void **state)
{
	struct device_config d = { 0 };
	struct node_config *c;
	struct hm_err e;

	(void)state;
	temp_write("c.json", "{\"nodeconfig\":1}");
	assert_int_equal(node_config_read(temp_path("c.json"), "n1", NULL, &d, &c, &e), -HM_EINVAL);
	assert_non_null(strstr(e.msg, "c.json: line 1: nodeconfig: is a single value"));
	assert_int_equal(node_config_read(temp_path("none"), "n1", NULL, &d, &c, &e), -HM_ENOTFOUND);
}

static int parse_once(void *arg)
{
	struct device_config d = { 0 };
	struct node_config *c = NULL;
	struct hm_err e;
	int r = node_config_parse(arg, strlen(arg), "c", "n1", NULL, &d, &c, &e);

	node_config_free(c);
	return r;
}

static void memory_that_is_short_is_an_error(void **state)
{
	/* A repeated key: so that the YAML reader, whose failure is none, has no part in it. */
	static char text[] = "{\"nodeconfig\":[{\"name\":\"n1\",\"name\":\"n1\",\"libcudaloglevel\":\"2\","
			     "\"filterdevices\":{\"uuid\":[\"a\"],\"index\":[1]}}]}";
	struct cJSON_Hooks hooks = { malloc, free };
	struct sweep_result r;

	(void)state;
	cJSON_InitHooks(&hooks); /* its allocations fail too */
	r = sweep_run(parse_once, text);
	cJSON_InitHooks(NULL);
	assert_false(r.failed);
	assert_int_equal(r.leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(zero_and_false_override_nothing),  TEST(an_entry_of_this_node_counts),
		TEST(no_entry_changes_nothing),         TEST(several_entries_in_their_order),
		TEST(keys_count_in_any_case),           TEST(bad_files_name_line_and_reason),
		TEST(every_key_is_looked_at),           TEST(the_file_is_named),
		TEST(memory_that_is_short_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
