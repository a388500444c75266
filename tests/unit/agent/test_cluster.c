#include "agent/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/unit.h"

/* A server that nobody serves: nothing here asks for an answer. */
static const char kubeconfig_text[] = "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
				      "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n";
static char folder[] = "/tmp/hm-cluster-XXXXXX", kubeconfig[64];

static struct {
	char kind[16], ns[32], name[32], uid[32], type[16], reason[32], message[700];
	unsigned count;
} told;

void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message);
void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message)
{
	assert_non_null(events);
	assert_string_equal(about->api_version, "v1");
	snprintf(told.kind, sizeof told.kind, "%s", about->kind);
	snprintf(told.ns, sizeof told.ns, "%s", about->name_space != NULL ? about->name_space : "(none)");
	snprintf(told.name, sizeof told.name, "%s", about->name);
	snprintf(told.uid, sizeof told.uid, "%s", about->uid);
	snprintf(told.type, sizeof told.type, "%s", type);
	snprintf(told.reason, sizeof told.reason, "%s", reason);
	snprintf(told.message, sizeof told.message, "%s", message);
	told.count++;
}

static int set_up(void **state)
{
	static const char *const names[] = { "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
					     "HOME" };
	struct hm_err e;
	FILE *f;

	for (size_t i = 0; i < HM_COUNT(names); i++)
		unsetenv(names[i]);
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(kubeconfig, sizeof kubeconfig, "%s/config", folder);
	f = fopen(kubeconfig, "w");
	if (f == NULL)
		return -1;
	fputs(kubeconfig_text, f);
	fclose(f);
	return loop_new((struct loop **)state, &e);
}

static int tear_down(void **state)
{
	loop_free(*state);
	unlink(kubeconfig);
	return rmdir(folder);
}

static void nothing_configured_is_off(void **state)
{
	const struct cluster_config cases[] = { { NULL, "n1", false }, { NULL, NULL, false }, { "", "", false } };
	const struct cluster_pod pod = { "ns", "p", "uid-1" };

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cluster) *c = NULL;
		struct cluster_stats stats;
		struct hm_err e;

		assert_int_equal(cluster_new(*state, &cases[i], &c, &e), 0);
		assert_null(cluster_client(c));
		assert_string_equal(cluster_node(c), "");
		told.count = 0;
		cluster_tell_pod(c, &pod, "Warning", "Reason", "text");
		cluster_tell_node(c, "Warning", "Reason", "text");
		cluster_tell_node(NULL, "Warning", "Reason", "text");
		assert_int_equal(told.count, 0);
		cluster_stats(c, &stats);
		assert_null(stats.requests);
	}
}

static void what_is_required_or_named_must_be_there(void **state)
{
	const struct {
		struct cluster_config config;
		const char *msg;
	} cases[] = {
		{ { NULL, "n1", true }, "no Kubernetes API server" },
		{ { kubeconfig, NULL, true }, "NODE_NAME" },
		{ { kubeconfig, "", false }, "NODE_NAME" },
		{ { "/nowhere/config", "n1", false }, "/nowhere/config" },
	};

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cluster) *c = NULL;
		struct hm_err e = { 0 };

		assert_true(cluster_new(*state, &cases[i].config, &c, &e) < 0);
		assert_null(c);
		assert_non_null(strstr(e.msg, cases[i].msg));
	}
}

/* A file that somebody has lying about must not stop a node that needs no API server. */
static void what_was_not_named_is_passed_over(void **state)
{
	const struct cluster_config config = { NULL, "n1", false };
	hm_auto(cluster) *c = NULL;
	struct hm_err e;

	setenv("KUBECONFIG", "/nowhere/config", 1);
	assert_int_equal(cluster_new(*state, &config, &c, &e), 0);
	unsetenv("KUBECONFIG");
	assert_null(cluster_client(c));
}

static void events_name_their_object(void **state)
{
	const struct cluster_config config = { kubeconfig, "node-7", true };
	const struct cluster_pod pod = { "ns", "p", "uid-1" };
	hm_auto(cluster) *c = NULL;
	struct cluster_stats stats;
	struct hm_err e;
	char text[600];

	assert_int_equal(cluster_new(*state, &config, &c, &e), 0);
	assert_non_null(cluster_client(c));
	assert_string_equal(cluster_node(c), "node-7");
	cluster_tell_pod(c, &pod, "Warning", "GPULost", "card %s, %u", "GPU-1", 7);
	assert_string_equal(told.kind, "Pod");
	assert_string_equal(told.ns, "ns");
	assert_string_equal(told.name, "p");
	assert_string_equal(told.uid, "uid-1");
	assert_string_equal(told.type, "Warning");
	assert_string_equal(told.reason, "GPULost");
	assert_string_equal(told.message, "card GPU-1, 7");
	cluster_tell_node(c, "Normal", "GPUBack", "it is");
	assert_string_equal(told.kind, "Node");
	assert_string_equal(told.ns, "(none)");
	assert_string_equal(told.name, "node-7");
	assert_string_equal(told.uid, "node-7");
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	cluster_tell_node(c, "Normal", "Long", "%s", text);
	assert_int_equal(strlen(told.message), 511);
	cluster_stats(c, &stats);
	assert_ptr_equal(stats.requests, kube_client_stats(cluster_client(c)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_configured_is_off),
		cmocka_unit_test(what_is_required_or_named_must_be_there),
		cmocka_unit_test(what_was_not_named_is_passed_over),
		cmocka_unit_test(events_name_their_object),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
