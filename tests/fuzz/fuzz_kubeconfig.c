/* Whatever is taken for a kubeconfig has a server to talk to, and nothing that could break a header or a command line.
 */
#include "kube/config.h"

#include <string.h>

#include "core/check.h"
#include "fuzz/fuzz.h"

static void check_plain(const char *text)
{
	for (; text != NULL && *text != '\0'; text++)
		CHECK((unsigned char)*text > ' ' && (unsigned char)*text < 0x7f);
}

static void check_pem(const struct kube_pem *pem)
{
	CHECK(pem->data == NULL || (pem->file == NULL && pem->n > 0 && pem->data[pem->n] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(kube_config) *c = NULL;
	struct hm_err e = { 0 };

	if (kube_config_parse((const char *)data, n, "/f", &c, &e) < 0) {
		CHECK(c == NULL && e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	CHECK(strncmp(c->server, "https://", 8) == 0 || strncmp(c->server, "http://", 7) == 0);
	CHECK(c->server[strlen(c->server) - 1] != '/');
	check_plain(c->server);
	check_plain(c->token);
	check_plain(c->tls_server_name);
	CHECK(c->token == NULL || c->token_file == NULL);
	check_pem(&c->ca);
	check_pem(&c->cert);
	check_pem(&c->key);
	return 0;
}
