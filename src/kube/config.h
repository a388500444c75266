/* Where the API server is and who we are: from a kubeconfig file, or from what the kubelet puts into a pod. Every error
 * names the file and the key. Refused with a reason: exec plugins, auth-provider, basic authentication, impersonation
 * (none is a daemon's way to log in), and whatever client-go refuses. */
#ifndef HM_KUBE_CONFIG_H
#define HM_KUBE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"

enum { KUBE_MAX_CONFIG_BYTES = 1 << 20 };

/* A PEM text, in a file or here; both NULL: none. All owned. */
struct kube_pem {
	char *file;
	char *data;
	size_t n; /* of data */
};

struct kube_config {
	char *origin;          /* for messages: "kubeconfig /root/.kube/config", "in-cluster" */
	char *server;          /* "https://10.96.0.1:443", maybe with a path; no slash at the end */
	char *tls_server_name; /* the name in the server's certificate where it is not the URL's; NULL */
	char *proxy_url;       /* NULL: what the environment says (https_proxy, no_proxy) */
	char *name_space;      /* NULL where none is named */
	struct kube_pem ca, cert, key;
	bool insecure; /* the server's certificate is not verified */
	char *token;   /* at most one of the two */
	char *token_file;
};

/* Where to look, in this order: the option, $KUBECONFIG, the pod's service account, $HOME/.kube/config. All borrowed;
 * NULL or "" is absent. */
struct kube_config_places {
	const char *kubeconfig;     /* the program's --kubeconfig */
	const char *env_kubeconfig; /* a list with ':' between: the first file that exists; files are not merged */
	const char *service_host, *service_port;
	const char *service_account; /* folder with token, ca.crt, namespace */
	const char *home;
};

/* The environment's places, with the program's option (may be NULL). */
struct kube_config_places kube_config_places_of(const char *kubeconfig);

/* Finds and reads it. Files that it names must be readable now. Where no place has anything: -HM_ENOTFOUND with all of
 * them in the message. */
int kube_config_find(const struct kube_config_places *places, struct kube_config **out, struct hm_err *e) HM_MUST_USE;

/* A kubeconfig's text. Relative file names are those of `folder`. Reads no file. -HM_EINVAL, -HM_EPROTO, -HM_ENOMEM. */
int kube_config_parse(const char *text, size_t n, const char *folder, struct kube_config **out,
		      struct hm_err *e) HM_MUST_USE;

/* Overwrites the secrets, too. */
void kube_config_free(struct kube_config *c);
HM_DEFINE_AUTO(kube_config, kube_config_free);

#endif
