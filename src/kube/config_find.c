#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/num.h"
#include "io/file.h"
#include "kube/config.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_config_places kube_config_places_of(const char *kubeconfig)
{
	return (struct kube_config_places) {
		.kubeconfig = kubeconfig,
		.env_kubeconfig = getenv("KUBECONFIG"),
		.service_host = getenv("KUBERNETES_SERVICE_HOST"),
		.service_port = getenv("KUBERNETES_SERVICE_PORT"),
		.service_account = SERVICE_ACCOUNT,
		.home = getenv("HOME"),
	};
}

static bool given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* curl's own message about a file that it cannot read says neither which nor why. */
static int check_files(const struct kube_config *c, struct hm_err *e)
{
	const struct {
		const char *key, *file;
	} files[] = {
		{ "certificate-authority", c->ca.file },
		{ "client-certificate", c->cert.file },
		{ "client-key", c->key.file },
		{ "tokenFile", c->token_file },
	};
	for (size_t i = 0; i < HM_COUNT(files); i++) {
		hm_auto_secret text = { 0 };

		if (files[i].file == NULL)
			continue;
		if (file_read(files[i].file, KUBE_MAX_CONFIG_BYTES, &text, e) < 0)
			return hm_err_wrap(e, "%s", files[i].key);
		if (text.n == 0)
			return hm_err_set(e, HM_EINVAL, "%s: %s is empty", files[i].key, files[i].file);
	}
	return 0;
}

static int no_memory(struct hm_err *e)
{
	return hm_err_set(e, HM_ENOMEM, "out of memory");
}

static int load_kubeconfig(const char *path, struct kube_config **out, struct hm_err *e)
{
	const char *slash = strrchr(path, '/');
	hm_auto_heap char *folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup(".");
	hm_auto(kube_config) *c = NULL;
	hm_auto_secret text = { 0 };
	hm_auto_str origin = { 0 };

	str_addf(&origin, "kubeconfig %s", path);
	if (folder == NULL || str_failed(&origin))
		return no_memory(e);
	if (file_read(path, KUBE_MAX_CONFIG_BYTES, &text, e) < 0)
		return hm_err_wrap(e, "kubeconfig");
	if (kube_config_parse(str_text(&text), text.n, folder, &c, e) < 0 || check_files(c, e) < 0)
		return hm_err_wrap(e, "kubeconfig %s", path);
	free(c->origin);
	c->origin = str_take(&origin);
	if (c->origin == NULL)
		return no_memory(e);
	*out = HM_STEAL(c);
	return 0;
}

static char *path_in(const char *folder, const char *name)
{
	hm_auto_str path = { 0 };

	str_addf(&path, "%s/%s", folder, name);
	return str_take(&path);
}

static int load_in_cluster(const struct kube_config_places *p, struct kube_config **out, struct hm_err *e)
{
	hm_auto(kube_config) *c = calloc(1, sizeof *c);
	hm_auto_heap char *ns = path_in(p->service_account, "namespace");
	bool v6 = strchr(p->service_host, ':') != NULL;
	hm_auto_str server = { 0 }, text = { 0 };
	uint64_t port;

	if (c == NULL || ns == NULL)
		return no_memory(e);
	if (!num_u64_str(p->service_port, 65535, &port) || port == 0)
		return hm_err_set(e, HM_EINVAL, "in-cluster: KUBERNETES_SERVICE_PORT \"%.40s\" is no port",
				  p->service_port);
	if (strpbrk(p->service_host, "/?#@ \t\r\n") != NULL)
		return hm_err_set(e, HM_EINVAL, "in-cluster: KUBERNETES_SERVICE_HOST \"%.60s\" is no host",
				  p->service_host);
	str_addf(&server, v6 ? "https://[%s]:%s" : "https://%s:%s", p->service_host, p->service_port);
	c->server = str_take(&server);
	c->origin = strdup("in-cluster");
	c->ca.file = path_in(p->service_account, "ca.crt");
	c->token_file = path_in(p->service_account, "token");
	if (c->server == NULL || c->origin == NULL || c->ca.file == NULL || c->token_file == NULL)
		return no_memory(e);
	if (check_files(c, e) < 0)
		return hm_err_wrap(e, "in-cluster");
	/* Absent in pods of odd make; nothing of ours rests on it. */
	if (file_read(ns, 256, &text, e) == 0 && text.n > 0) {
		c->name_space = str_take(&text);
		if (c->name_space == NULL)
			return no_memory(e);
	}
	*out = HM_STEAL(c);
	return 0;
}

/* The first of the list that exists; the error of the first where none does. */
static int load_first(const char *list, struct kube_config **out, struct hm_err *e)
{
	struct hm_err first = { 0 };
	hm_auto_heap char *copy = strdup(list);
	char *rest = copy, *path;

	if (copy == NULL)
		return no_memory(e);
	while ((path = strsep(&rest, ":")) != NULL) {
		struct hm_err its = { 0 };
		int r = path[0] != '\0' ? load_kubeconfig(path, out, &its) : -HM_ENOTFOUND;

		if (r != -HM_ENOTFOUND || (its.code != 0 && access(path, F_OK) == 0)) {
			*e = its;
			return r < 0 ? hm_err_wrap(e, "KUBECONFIG") : r;
		}
		if (first.code == 0)
			first = its;
	}
	if (first.code == 0)
		return hm_err_set(e, HM_EINVAL, "KUBECONFIG: \"%.100s\" names no file", list);
	*e = first;
	return hm_err_wrap(e, "KUBECONFIG");
}

int kube_config_find(const struct kube_config_places *p, struct kube_config **out, struct hm_err *e)
{
	hm_auto_heap char *at_home = NULL;
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (given(p->kubeconfig))
		return load_kubeconfig(p->kubeconfig, out, e);
	if (given(p->env_kubeconfig))
		return load_first(p->env_kubeconfig, out, e);
	if (given(p->service_host) && given(p->service_port))
		return load_in_cluster(p, out, e);
	if (given(p->home)) {
		at_home = path_in(p->home, ".kube/config");
		if (at_home == NULL)
			return no_memory(e);
		if (access(at_home, F_OK) == 0)
			return load_kubeconfig(at_home, out, e);
	}
	return hm_err_set(e, HM_ENOTFOUND,
			  "no Kubernetes API server: no --kubeconfig, KUBECONFIG, KUBERNETES_SERVICE_HOST with "
			  "KUBERNETES_SERVICE_PORT, nor %s/.kube/config",
			  given(p->home) ? p->home : "$HOME");
}
