#include "kube/config.h"

#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "io/yaml.h"

/* A user, cluster or context: the object that "name: NAME" in a list "<list>" has under <kind>. Embedded, since a place
 * borrows its parents. */
struct named {
	struct json_at list, item, body;
};

static void free_secret(char *text, size_t n)
{
	if (text != NULL)
		explicit_bzero(text, n);
	free(text);
}

static void pem_fini(struct kube_pem *p)
{
	free(p->file);
	free_secret(p->data, p->n);
}

void kube_config_free(struct kube_config *c)
{
	if (c == NULL)
		return;
	free(c->origin);
	free(c->server);
	free(c->tls_server_name);
	free(c->proxy_url);
	free(c->name_space);
	pem_fini(&c->ca);
	pem_fini(&c->cert);
	pem_fini(&c->key);
	free_secret(c->token, c->token != NULL ? strlen(c->token) : 0);
	free(c->token_file);
	free(c);
}

static int copy(const char *text, char **out, struct hm_err *e)
{
	*out = strdup(text);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "out of memory");
}

static int copy_text(const struct json_at *at, const char *key, char **out, struct hm_err *e)
{
	const char *text = NULL;
	int r = json_text(at, key, JSON_OPTIONAL, &text, e);

	if (r < 0 || text == NULL || text[0] == '\0')
		return r;
	return copy(text, out, e);
}

/* A file's name, made absolute by the folder of the kubeconfig. */
static int copy_path(const struct json_at *at, const char *key, const char *folder, char **out, struct hm_err *e)
{
	hm_auto_str path = { 0 };
	const char *text = NULL;
	int r = json_text(at, key, JSON_OPTIONAL, &text, e);

	if (r < 0 || text == NULL || text[0] == '\0')
		return r;
	if (text[0] != '/' && folder != NULL)
		str_addf(&path, "%s/", folder);
	str_add(&path, text);
	*out = str_take(&path);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "out of memory");
}

/* <key>-data in base64, else the file <key>. */
static int read_pem(const struct json_at *at, const char *key, const char *data_key, const char *folder,
		    struct kube_pem *out, struct hm_err *e)
{
	const char *text = NULL;
	size_t n;

	if (json_text(at, data_key, JSON_OPTIONAL, &text, e) < 0)
		return -e->code;
	if (text == NULL || text[0] == '\0')
		return copy_path(at, key, folder, &out->file, e);
	n = strlen(text);
	out->data = malloc(n / 4 * 3 + 1);
	if (out->data == NULL)
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	out->n = n / 4 * 3; /* what a failure has to overwrite */
	memset(out->data, 0, out->n + 1);
	if (!base64_decode(text, n, (uint8_t *)out->data, &out->n))
		return json_err(at, data_key, e, "is no base64");
	out->data[out->n] = '\0';
	if (memmem(out->data, out->n, "-----BEGIN ", 11) == NULL)
		return json_err(at, data_key, e, "holds no PEM text (\"-----BEGIN ...\")");
	return 0;
}

static int find_named(const struct json_at *root, const char *list, const char *kind, const char *name,
		      const char *asked_by, struct named *out, struct hm_err *e)
{
	if (json_array(root, list, JSON_REQUIRED, &out->list, e) < 0)
		return -e->code;
	for (size_t i = 0; i < json_count(&out->list); i++) {
		const char *its_name = NULL;

		out->item = json_item(&out->list, i);
		if (json_text(&out->item, "name", JSON_REQUIRED, &its_name, e) < 0)
			return -e->code;
		if (strcmp(its_name, name) == 0)
			return json_object(&out->item, kind, JSON_REQUIRED, &out->body, e);
	}
	return json_err(&out->list, NULL, e, "has no entry \"%.100s\", which %s names", name, asked_by);
}

static bool is_plain(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
			return false;
	}
	return true;
}

static const char *fault_of_server(const char *url)
{
	const char *host = strstr(url, "://");

	if (!is_plain(url))
		return "has a blank or a control character";
	if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
		return "does not begin with https:// or http://";
	host += 3;
	if (host[0] == '\0' || host[0] == '/')
		return "names no host";
	if (strpbrk(url, "?#@") != NULL)
		return "has a query, a fragment or a user's name";
	return NULL;
}

static int read_server(const struct json_at *at, struct kube_config *c, struct hm_err *e)
{
	const char *text = NULL, *fault;
	size_t n;

	if (json_text(at, "server", JSON_REQUIRED, &text, e) < 0)
		return -e->code;
	fault = fault_of_server(text);
	if (fault != NULL)
		return json_err(at, "server", e, "\"%.100s\" %s", text, fault);
	if (copy(text, &c->server, e) < 0)
		return -e->code;
	for (n = strlen(c->server); c->server[n - 1] == '/'; n--)
		c->server[n - 1] = '\0';
	return 0;
}

static int read_cluster(const struct json_at *at, const char *folder, struct kube_config *c, struct hm_err *e)
{
	if (read_server(at, c, e) < 0 || copy_text(at, "tls-server-name", &c->tls_server_name, e) < 0 ||
	    copy_text(at, "proxy-url", &c->proxy_url, e) < 0 ||
	    json_bool(at, "insecure-skip-tls-verify", JSON_OPTIONAL, &c->insecure, e) < 0 ||
	    read_pem(at, "certificate-authority", "certificate-authority-data", folder, &c->ca, e) < 0)
		return -e->code;
	if (c->insecure && (c->ca.file != NULL || c->ca.data != NULL))
		return json_err(at, "insecure-skip-tls-verify", e, "contradicts the certificate-authority beside it");
	if (c->tls_server_name != NULL && !is_plain(c->tls_server_name))
		return json_err(at, "tls-server-name", e, "has a blank or a control character");
	return 0;
}

static int refuse_other_logins(const struct json_at *at, struct hm_err *e)
{
	static const struct {
		const char *key, *why;
	} refused[] = {
		{ "exec", "exec plugins are not run; use a token, tokenFile or a client certificate" },
		{ "auth-provider", "auth providers are not supported; use a token, tokenFile or a client certificate" },
		{ "username", "Kubernetes has no basic authentication since 1.19" },
		{ "password", "Kubernetes has no basic authentication since 1.19" },
		{ "as", "impersonation is not supported" },
		{ "as-uid", "impersonation is not supported" },
		{ "as-groups", "impersonation is not supported" },
		{ "as-user-extra", "impersonation is not supported" },
	};
	for (size_t i = 0; i < HM_COUNT(refused); i++) {
		const struct cJSON *v = cJSON_GetObjectItemCaseSensitive(at->node, refused[i].key);

		if (v != NULL && !cJSON_IsNull(v))
			return json_err(at, refused[i].key, e, "%s", refused[i].why);
	}
	return 0;
}

static int read_user(const struct json_at *at, const char *folder, struct kube_config *c, struct hm_err *e)
{
	bool cert, key;

	if (refuse_other_logins(at, e) < 0 ||
	    read_pem(at, "client-certificate", "client-certificate-data", folder, &c->cert, e) < 0 ||
	    read_pem(at, "client-key", "client-key-data", folder, &c->key, e) < 0 ||
	    copy_path(at, "tokenFile", folder, &c->token_file, e) < 0)
		return -e->code;
	/* As client-go: the file wins, since it is the one that is renewed. */
	if (c->token_file == NULL && copy_text(at, "token", &c->token, e) < 0)
		return -e->code;
	if (c->token != NULL && !is_plain(c->token))
		return json_err(at, "token", e, "has a blank or a control character");
	cert = c->cert.file != NULL || c->cert.data != NULL;
	key = c->key.file != NULL || c->key.data != NULL;
	if (cert != key)
		return json_err(at, NULL, e, "client-%s is there without client-%s", cert ? "certificate" : "key",
				cert ? "key" : "certificate");
	return 0;
}

static int read_tree(const struct json_at *root, const char *folder, struct kube_config *c, struct hm_err *e)
{
	const char *current = NULL, *cluster = NULL, *user = NULL, *kind = NULL;
	struct named context, named_cluster, named_user;

	if (json_text(root, "kind", JSON_OPTIONAL, &kind, e) < 0)
		return -e->code;
	if (kind != NULL && strcmp(kind, "Config") != 0)
		return json_err(root, "kind", e, "\"%.60s\" is not \"Config\"", kind);
	if (json_text(root, "current-context", JSON_REQUIRED, &current, e) < 0 ||
	    find_named(root, "contexts", "context", current, "current-context", &context, e) < 0 ||
	    copy_text(&context.body, "namespace", &c->name_space, e) < 0 ||
	    json_text(&context.body, "cluster", JSON_REQUIRED, &cluster, e) < 0 ||
	    find_named(root, "clusters", "cluster", cluster, "the context", &named_cluster, e) < 0 ||
	    read_cluster(&named_cluster.body, folder, c, e) < 0)
		return -e->code;
	if (json_text(&context.body, "user", JSON_OPTIONAL, &user, e) < 0)
		return -e->code;
	if (user == NULL || user[0] == '\0')
		return 0;
	if (find_named(root, "users", "user", user, "the context", &named_user, e) < 0)
		return -e->code;
	return read_user(&named_user.body, folder, c, e);
}

int kube_config_parse(const char *text, size_t n, const char *folder, struct kube_config **out, struct hm_err *e)
{
	hm_auto(kube_config) *c = calloc(1, sizeof *c);
	hm_auto(cJSON) *tree = NULL;
	struct json_at root;
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	if (yaml_parse(text, n, &tree, e) < 0)
		return -e->code;
	root = yaml_root(tree);
	if (read_tree(&root, folder, c, e) < 0 || copy("kubeconfig", &c->origin, e) < 0)
		return -e->code;
	*out = HM_STEAL(c);
	return 0;
}
