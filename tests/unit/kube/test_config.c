#include "kube/config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

/* "-----BEGIN X-----\n" and "-----BEGIN K-----\n", by Python's base64. */
#define PEM_X "LS0tLS1CRUdJTiBYLS0tLS0K"
#define PEM_K "LS0tLS1CRUdJTiBLLS0tLS0K"

#define CONFIG(cluster, user)                                                                                          \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\npreferences: {}\n"                                       \
	"contexts:\n- name: other\n  context: {cluster: nowhere}\n"                                                    \
	"- name: here\n  context: {cluster: c, user: u, namespace: ns}\n"                                              \
	"clusters:\n- name: c\n  cluster:\n    " cluster "\nusers:\n- name: u\n  user: " user "\n"

static int parse(const char *text, struct kube_config **out, struct hm_err *e)
{
	return kube_config_parse(text, strlen(text), "/etc/kube", out, e);
}

static void all_in_files(void **state)
{
	hm_auto(kube_config) *c = NULL;

	(void)state;
	assert_int_equal(
		parse(CONFIG("server: https://10.0.0.1:6443/\n    certificate-authority: ca.crt\n"
			     "    tls-server-name: api.example\n    proxy-url: http://proxy:3128",
			     "{client-certificate: /abs/c.crt, client-key: c.key, tokenFile: t, token: ignored}"),
		      &c, NULL),
		0);
	assert_string_equal(c->server, "https://10.0.0.1:6443");
	assert_string_equal(c->ca.file, "/etc/kube/ca.crt");
	assert_null(c->ca.data);
	assert_string_equal(c->tls_server_name, "api.example");
	assert_string_equal(c->proxy_url, "http://proxy:3128");
	assert_string_equal(c->cert.file, "/abs/c.crt");
	assert_string_equal(c->key.file, "/etc/kube/c.key");
	assert_string_equal(c->token_file, "/etc/kube/t");
	assert_null(c->token);
	assert_string_equal(c->name_space, "ns");
	assert_false(c->insecure);
}

static void all_inside(void **state)
{
	hm_auto(kube_config) *c = NULL, *plain = NULL;

	(void)state;
	assert_int_equal(parse(CONFIG("server: https://[fd00::1]:6443/k8s/c1\n    certificate-authority: loses\n"
				      "    certificate-authority-data: " PEM_X,
				      "{client-certificate-data: " PEM_X ", client-key-data: " PEM_K ", token: abc}"),
			       &c, NULL),
			 0);
	assert_string_equal(c->server, "https://[fd00::1]:6443/k8s/c1");
	assert_null(c->ca.file);
	assert_string_equal(c->ca.data, "-----BEGIN X-----\n");
	assert_int_equal(c->ca.n, 18);
	assert_string_equal(c->key.data, "-----BEGIN K-----\n");
	assert_string_equal(c->token, "abc");
	assert_int_equal(parse("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
			       "clusters: [{name: c, cluster: {server: \"http://h\", insecure-skip-tls-verify: true}}]",
			       &plain, NULL),
			 0);
	assert_true(plain->insecure);
	assert_null(plain->token);
}

static void what_is_refused_says_where(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "kind: Pod\n", "line 1: kind: \"Pod\" is not \"Config\"" },
		{ "kind: Config\n", "line 1: current-context: is missing" },
		{ "current-context: x\ncontexts: []\n",
		  "line 2: contexts: has no entry \"x\", which current-context names" },
		{ "current-context: x\ncontexts: [{name: x, context: {cluster: y}}]\nclusters: [{name: c, cluster: "
		  "{}}]\n",
		  "line 3: clusters: has no entry \"y\", which the context names" },
		{ CONFIG("server: 10.0.0.1:6443", "{}"),
		  "line 13: clusters[0].cluster.server: \"10.0.0.1:6443\" does not begin with https:// or http://" },
		{ CONFIG("server: \"https:///x\"", "{}"),
		  "line 13: clusters[0].cluster.server: \"https:///x\" names no host" },
		{ CONFIG("server: \"https://u:p@h\"", "{}"),
		  "line 13: clusters[0].cluster.server: \"https://u:p@h\" has a query, a fragment or a user's name" },
		{ CONFIG("server: \"https://h\\r\\nX\"", "{}"),
		  "line 13: clusters[0].cluster.server: \"https://h\r\nX\" has a blank or a control character" },
		{ CONFIG("server: https://h\n    certificate-authority-data: \"!\"", "{}"),
		  "line 14: clusters[0].cluster.certificate-authority-data: is no base64" },
		{ CONFIG("server: https://h\n    certificate-authority-data: Zm9v", "{}"),
		  "line 14: clusters[0].cluster.certificate-authority-data: holds no PEM text (\"-----BEGIN ...\")" },
		{ CONFIG("server: https://h\n    insecure-skip-tls-verify: true\n    certificate-authority: x", "{}"),
		  "line 14: clusters[0].cluster.insecure-skip-tls-verify: contradicts the certificate-authority beside "
		  "it" },
		{ CONFIG("server: https://h", "{exec: {command: aws}}"),
		  "line 16: users[0].user.exec: exec plugins are not run; use a token, tokenFile or a client "
		  "certificate" },
		{ CONFIG("server: https://h", "{auth-provider: {name: gcp}}"),
		  "line 16: users[0].user.auth-provider: auth providers are not supported; use a token, tokenFile or a "
		  "client certificate" },
		{ CONFIG("server: https://h", "{username: a, password: b}"),
		  "line 16: users[0].user.username: Kubernetes has no basic authentication since 1.19" },
		{ CONFIG("server: https://h", "{as: root}"),
		  "line 16: users[0].user.as: impersonation is not supported" },
		{ CONFIG("server: https://h", "{client-key: x}"),
		  "line 16: users[0].user: client-key is there without client-certificate" },
		{ CONFIG("server: https://h", "{client-certificate-data: " PEM_X "}"),
		  "line 16: users[0].user: client-certificate is there without client-key" },
		{ CONFIG("server: https://h", "{token: \"a b\"}"),
		  "line 16: users[0].user.token: has a blank or a control character" },
		{ CONFIG("server: https://h", "{token: 7}"), "line 16: users[0].user.token: 7 is not a text" },
		{ CONFIG("server: https://h", "[]"), "line 16: users[0].user: a list is not an object" },
		{ "{", "line 2: did not find" },
		{ "", "" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(kube_config) *c = NULL;
		struct hm_err e = { 0 };

		assert_true(parse(cases[i].text, &c, &e) < 0);
		assert_null(c);
		if (strncmp(e.msg, cases[i].msg, strlen(cases[i].msg)) != 0)
			fail_msg("case %zu: %s", i, e.msg);
	}
}

/* --- where it is looked for --- */

static void write_config(const char *name, const char *server)
{
	char text[600];

	snprintf(text, sizeof text,
		 "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
		 "clusters: [{name: c, cluster: {server: \"%s\"}}]\n",
		 server);
	temp_write(name, text);
}

static struct kube_config_places everywhere(void)
{
	write_config("option", "https://option");
	write_config("env", "https://env");
	mkdir(temp_path(".kube"), 0700);
	write_config(".kube/config", "https://home");
	temp_write("token", "t");
	temp_write("ca.crt", "-----BEGIN X");
	return (struct kube_config_places) { .kubeconfig = temp_path("option"),
					     .env_kubeconfig = temp_path("env"),
					     .service_host = "10.96.0.1",
					     .service_port = "443",
					     .service_account = temp_path(""),
					     .home = temp_path("") };
}

static void the_first_place_wins(void **state)
{
	static const char *const servers[] = { "https://option", "https://env", "https://10.96.0.1:443",
					       "https://home" };
	struct kube_config_places p = everywhere();

	(void)state;
	for (size_t i = 0; i < HM_COUNT(servers); i++) {
		hm_auto(kube_config) *c = NULL;

		assert_int_equal(kube_config_find(&p, &c, NULL), 0);
		assert_string_equal(c->server, servers[i]);
		*(i == 0 ? &p.kubeconfig : i == 1 ? &p.env_kubeconfig : &p.service_host) = "";
	}
}

static void in_cluster(void **state)
{
	struct kube_config_places p = everywhere();
	hm_auto(kube_config) *c = NULL, *six = NULL, *none = NULL;
	struct hm_err e = { 0 };

	(void)state;
	p.kubeconfig = p.env_kubeconfig = NULL;
	temp_write("namespace", "hami");
	assert_int_equal(kube_config_find(&p, &c, NULL), 0);
	assert_string_equal(c->origin, "in-cluster");
	assert_string_equal(c->token_file, temp_path("token"));
	assert_string_equal(c->ca.file, temp_path("ca.crt"));
	assert_string_equal(c->name_space, "hami");
	p.service_host = "fd00::1";
	assert_int_equal(kube_config_find(&p, &six, NULL), 0);
	assert_string_equal(six->server, "https://[fd00::1]:443");
	p.service_port = "x";
	assert_true(kube_config_find(&p, &none, &e) < 0);
	assert_string_equal(e.msg, "in-cluster: KUBERNETES_SERVICE_PORT \"x\" is no port");
	p.service_port = "443";
	temp_write("ca.crt", "");
	assert_true(kube_config_find(&p, &none, &e) < 0);
	assert_non_null(strstr(e.msg, "in-cluster: certificate-authority: "));
	assert_non_null(strstr(e.msg, "ca.crt is empty"));
}

static void a_list_of_files(void **state)
{
	struct kube_config_places p = { 0 };
	hm_auto(kube_config) *c = NULL;
	struct hm_err e = { 0 };
	char list[600];

	(void)state;
	write_config("second", "https://second");
	snprintf(list, sizeof list, "%s::%s", temp_path("absent"), temp_path("second"));
	p.env_kubeconfig = list;
	assert_int_equal(kube_config_find(&p, &c, NULL), 0);
	assert_string_equal(c->server, "https://second");
	p.env_kubeconfig = temp_path("absent");
	kube_config_free(HM_STEAL(c));
	assert_int_equal(kube_config_find(&p, &c, &e), -HM_ENOTFOUND);
	assert_non_null(strstr(e.msg, "KUBECONFIG: kubeconfig: "));
	assert_non_null(strstr(e.msg, "absent"));
	/* A file that exists and is wrong is an error, not a reason to look on. */
	temp_write("bad", "kind: Pod");
	snprintf(list, sizeof list, "%s:%s", temp_path("bad"), temp_path("second"));
	p.env_kubeconfig = list;
	assert_true(kube_config_find(&p, &c, &e) < 0);
	assert_non_null(strstr(e.msg, "bad: line 1: kind"));
}

static void files_that_it_names_must_be_there(void **state)
{
	struct kube_config_places p = { 0 };
	hm_auto(kube_config) *c = NULL;
	struct hm_err e = { 0 };

	(void)state;
	temp_write("config", CONFIG("server: https://h\n    certificate-authority: gone.crt", "{}"));
	p.kubeconfig = temp_path("config");
	assert_int_equal(kube_config_find(&p, &c, &e), -HM_ENOTFOUND);
	assert_non_null(strstr(e.msg, "config: certificate-authority: "));
	assert_non_null(strstr(e.msg, "/gone.crt: No such file or directory"));
	/* In a list too: the config itself is there. */
	p.env_kubeconfig = HM_STEAL(p.kubeconfig);
	assert_int_equal(kube_config_find(&p, &c, &e), -HM_ENOTFOUND);
	assert_non_null(strstr(e.msg, "certificate-authority: "));
}

static void nowhere(void **state)
{
	struct kube_config_places p = { .home = "/nowhere" };
	hm_auto(kube_config) *c = NULL;
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(kube_config_find(&p, &c, &e), -HM_ENOTFOUND);
	assert_string_equal(e.msg,
			    "no Kubernetes API server: no --kubeconfig, KUBECONFIG, KUBERNETES_SERVICE_HOST with "
			    "KUBERNETES_SERVICE_PORT, nor /nowhere/.kube/config");
}

static int use(void *arg)
{
	hm_auto(kube_config) *c = NULL;

	(void)arg;
	return parse(CONFIG("server: https://10.0.0.1:6443/\n    certificate-authority-data: " PEM_X
			    "\n    tls-server-name: api.example\n    proxy-url: http://proxy:3128",
			    "{client-certificate-data: " PEM_X ", client-key: c.key, tokenFile: t}"),
		     &c, NULL);
}

static int use_in_cluster(void *arg)
{
	hm_auto(kube_config) *c = NULL;

	return kube_config_find(arg, &c, NULL);
}

static void memory_runs_out(void **state)
{
	struct kube_config_places p = everywhere();

	(void)state;
	sweep_check("kubeconfig", use, NULL);
	p.env_kubeconfig = NULL;
	sweep_check("file", use_in_cluster, &p);
	p.kubeconfig = NULL;
	sweep_check("in-cluster", use_in_cluster, &p);
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_in_files),
		cmocka_unit_test(all_inside),
		cmocka_unit_test(what_is_refused_says_where),
		WITH_FOLDER(the_first_place_wins),
		WITH_FOLDER(in_cluster),
		WITH_FOLDER(a_list_of_files),
		WITH_FOLDER(files_that_it_names_must_be_there),
		cmocka_unit_test(nowhere),
		WITH_FOLDER(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
