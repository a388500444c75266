/* What admission asks of the cluster. */
#include "sched/verbs/admission.h"

#include <string.h>

#include "unit/model/placement/make_cluster.h"

static const struct quota_limits quota = { 50000, 120 };

struct world {
	struct device_config *device;
	struct cluster *cluster;
	struct admission *admission;
	bool known;
};

static bool says(void *arg)
{
	return *(const bool *)arg;
}

static void open_world(struct world *w, bool cards)
{
	static const char config[] = "nvidia: {}";
	struct sched_options o = { .annotation_writers = "a,,system:serviceaccount:x:y," };
	struct hm_err e;

	assert_int_equal(device_config_parse(config, strlen(config), "config", NULL, &w->device, &e), 0);
	o.device = w->device;
	w->cluster = cluster_new(1);
	assert_non_null(w->cluster);
	if (cards) {
		put_node(w->cluster, &(struct made_node) { "n1", 2, 10, 40000, 100, NULL });
		put_node(w->cluster, &(struct made_node) { "n2", 1, 10, 80000, 100, NULL });
	}
	assert_int_equal(quotas_set(cluster_quotas(w->cluster), "ns", "q", quota, &e), 0);
	w->known = true;
	assert_int_equal(
		admission_new(&(struct admission_config) { &o, w->cluster, says, &w->known }, &w->admission, &e), 0);
}

static void close_world(struct world *w)
{
	admission_free(w->admission);
	cluster_free(w->cluster);
	device_config_free(w->device);
}

static void expect(const struct world *w, const char *annotations, const char *limits, const char *const says[])
{
	hm_auto_str body = { 0 }, out = { 0 };
	struct hm_err e;

	str_addf(
		&body,
		"{\"request\":{\"operation\":\"CREATE\",\"namespace\":\"ns\",\"object\":{\"metadata\":{\"annotations\":"
		"{%s}},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{%s}}}]}}}}",
		annotations, limits);
	assert_int_equal(webhook_answer(admission_rules(w->admission), "application/json", str_text(&body), body.n,
					&out, NULL, &e),
			 0);
	for (; *says != NULL; says++)
		if (strstr(str_text(&out), *says) == NULL)
			fail_msg("%s {%s}: no \"%s\" in %s", annotations, limits, *says, str_text(&out));
}
#define SAYS(...) ((const char *const[]) { __VA_ARGS__, NULL })

static void test_what_the_cluster_has(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, true);
	expect(&w, "", "\"nvidia.com/gpu\":1,\"nvidia.com/gpumem\":80001", SAYS("at most 80000 MiB"));
	expect(&w, "", "\"nvidia.com/gpu\":1,\"nvidia.com/gpumem\":50000,\"nvidia.com/gpucores\":120",
	       SAYS("must be a whole number between 0 and 100"));
	expect(&w, "", "\"nvidia.com/gpu\":2,\"nvidia.com/gpumem\":25000,\"nvidia.com/gpucores\":60",
	       SAYS("\"allowed\":true"));
	expect(&w, "", "\"nvidia.com/gpu\":2,\"nvidia.com/gpumem\":25000,\"nvidia.com/gpucores\":61",
	       SAYS("\"exceeding resource quota\"",
		    "the pod asks for 50000 MiB and 122 percent of cards' cores; left: 50000 MiB 120 percent"));
	/* Half of the smallest card is 20000. */
	expect(&w, "", "\"nvidia.com/gpu\":2,\"nvidia.com/gpumem-percentage\":50", SAYS("\"allowed\":true"));
	expect(&w, "", "\"nvidia.com/gpu\":3,\"nvidia.com/gpumem-percentage\":50", SAYS("60000 MiB"));
	expect(&w, "", "\"nvidia.com/gpu\":3,\"nvidia.com/gpumem\":1",
	       SAYS("\"allowed\":true",
		    "\"container c: nvidia.com/gpu is 3: no node of the cluster has more than 2 cards\""));
	expect(&w, "\"nvidia.com/use-gputype\":\"a100,B200\"", "\"nvidia.com/gpumem\":1",
	       SAYS("\"warnings\":[\"annotation nvidia.com/use-gputype: no card of the cluster has \\\"B200\\\""));
	close_world(&w);
}

/* There a pod gets and counts for an instance: no whole card is more than the largest, of 9856 MiB. */
static void test_a_quota_where_cards_are_cut(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, false);
	put_node(w.cluster, &(struct made_node) { "n1", 6, 10, 40000, 100, "mig" });
	expect(&w, "", "\"nvidia.com/gpu\":5,\"nvidia.com/gpucores\":10", SAYS("\"allowed\":true"));
	expect(&w, "", "\"nvidia.com/gpu\":6,\"nvidia.com/gpucores\":10", SAYS("the pod asks for 59136 MiB"));
	close_world(&w);
}

/* Also one that nobody asked about while it was there. */
static void test_a_node_that_is_away_may_come_back(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, true);
	cluster_remove_node(w.cluster, "n2");
	expect(&w, "", "\"nvidia.com/gpu\":1,\"nvidia.com/gpumem\":50000", SAYS("\"allowed\":true"));
	expect(&w, "", "\"nvidia.com/gpu\":1,\"nvidia.com/gpumem\":80001", SAYS("at most 80000 MiB"));
	close_world(&w);
}

static void test_an_empty_cluster_refuses_nobody(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, false);
	expect(&w, "\"nvidia.com/use-gputype\":\"B200\"", "\"nvidia.com/gpumem\":50000",
	       SAYS("\"allowed\":true,\"status\":{\"metadata\":{},\"code\":200},\"patchType\""));
	close_world(&w);
}

/* Half of it may be there only. */
static void test_a_cluster_that_is_not_known_yet_refuses_nobody(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, true);
	w.known = false;
	expect(&w, "\"nvidia.com/use-gputype\":\"B200\"", "\"nvidia.com/gpumem\":90000",
	       SAYS("\"allowed\":true,\"status\":{\"metadata\":{},\"code\":200},\"patchType\""));
	close_world(&w);
}

static void test_writers(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, false);
	assert_int_equal(admission_rules(w.admission)->writer_count, 2);
	assert_string_equal(admission_rules(w.admission)->writers[0], "a");
	assert_string_equal(admission_rules(w.admission)->writers[1], "system:serviceaccount:x:y");
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_cluster_has),
		cmocka_unit_test(test_a_quota_where_cards_are_cut),
		cmocka_unit_test(test_a_node_that_is_away_may_come_back),
		cmocka_unit_test(test_an_empty_cluster_refuses_nobody),
		cmocka_unit_test(test_a_cluster_that_is_not_known_yet_refuses_nobody),
		cmocka_unit_test(test_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
