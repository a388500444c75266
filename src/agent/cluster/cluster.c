#include "agent/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/fmt.h"

enum { MESSAGE_BYTES = 512 };

struct cluster {
	char *node;
	struct kube_client *client; /* NULL: off */
	struct kube_events *events;
};

static int find(const struct cluster_config *config, struct kube_config **out, struct hm_err *e)
{
	struct kube_config_places places = kube_config_places_of(config->kubeconfig);
	bool named = config->kubeconfig != NULL && config->kubeconfig[0] != '\0';

	if (config->node == NULL || config->node[0] == '\0')
		return config->required || named ? hm_err_set(e, HM_EINVAL,
							      "the name of this node is not known: set NODE_NAME from "
							      "the pod's spec.nodeName")
						 : 0;
	if (kube_config_find(&places, out, e) == 0)
		return 0;
	if (config->required || named)
		return -e->code;
	if (e->code != HM_ENOTFOUND || places.env_kubeconfig != NULL)
		log_warn("the API server's configuration cannot be used; working without", KV_ERR(e));
	return 0;
}

static int begin(struct loop *l, struct cluster *c, const struct cluster_config *config, struct kube_config *take_found,
		 struct hm_err *e)
{
	const struct kube_client_options options = { .user_agent = "hami-device-plugin",
						     .per_second = config->per_second,
						     .burst = config->burst };

	log_info("the API server", KV("server", take_found->server), KV("as", take_found->origin), KV("node", c->node));
	if (kube_client_new(l, take_found, &options, &c->client, e) < 0)
		return -e->code;
	return kube_events_new(c->client, "hami-device-plugin", c->node, &c->events, e);
}

int cluster_new(struct loop *l, const struct cluster_config *config, struct cluster **out, struct hm_err *e)
{
	hm_auto(kube_config) *found = NULL;
	hm_auto(cluster) *c = calloc(1, sizeof *c);

	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "API server");
	if (find(config, &found, e) < 0)
		return hm_err_wrap(e, "API server");
	c->node = strdup(found != NULL ? config->node : "");
	if (c->node == NULL)
		return hm_err_set(e, HM_ENOMEM, "API server");
	if (found != NULL && begin(l, c, config, HM_STEAL(found), e) < 0)
		return hm_err_wrap(e, "API server");
	*out = HM_STEAL(c);
	return 0;
}

void cluster_free(struct cluster *c)
{
	if (c == NULL)
		return;
	kube_events_free(c->events);
	kube_client_free(c->client);
	free(c->node);
	free(c);
}

struct kube_client *cluster_client(const struct cluster *c)
{
	return c->client;
}

const char *cluster_node(const struct cluster *c)
{
	return c->node;
}

static void tell(struct cluster *c, const struct kube_event_object *about, const char *type, const char *reason,
		 const char *fmt, va_list ap)
{
	char message[MESSAGE_BYTES];

	hm_vfmt(message, sizeof message, fmt, ap);
	kube_events_tell(c->events, about, type, reason, message);
}

void cluster_tell_pod(struct cluster *c, const struct cluster_pod *pod, const char *type, const char *reason,
		      const char *fmt, ...)
{
	const struct kube_event_object about = { "v1", "Pod", pod->name_space, pod->name, pod->uid };
	va_list ap;

	if (c == NULL || c->client == NULL)
		return;
	va_start(ap, fmt);
	tell(c, &about, type, reason, fmt, ap);
	va_end(ap);
}

void cluster_tell_node(struct cluster *c, const char *type, const char *reason, const char *fmt, ...)
{
	va_list ap;

	if (c == NULL || c->client == NULL)
		return;
	/* A node's events bear its name as the UID, as the kubelet's do: "kubectl describe node" looks for that. */
	const struct kube_event_object about = { "v1", "Node", NULL, c->node, c->node };

	va_start(ap, fmt);
	tell(c, &about, type, reason, fmt, ap);
	va_end(ap);
}

void cluster_stats(const struct cluster *c, struct cluster_stats *out)
{
	*out = (struct cluster_stats) { 0 };
	if (c == NULL || c->client == NULL)
		return;
	out->requests = kube_client_stats(c->client);
	kube_events_state(c->events, &out->events);
}
