#include "agent/hami_mode.h"

#include <stdlib.h>
#include <string.h>

#include "agent/node_object.h"
#include "agent/offer_hami.h"
#include "contract/hami.h"
#include "core/fmt.h"

struct hami_mode {
	struct hami_mode_config config;
	char socket[80];
	struct cluster *cluster;
	struct node_object *node;
	const struct fleet *fleet; /* NULL: no cards yet */
};

/* Resource names may be longer than a socket's: what identifies them is at the end. */
static void name_socket(struct hami_mode *m)
{
	const char *name = strchr(m->config.options->resource_name, '/');
	size_t n;

	name = name != NULL ? name + 1 : m->config.options->resource_name;
	n = strlen(name);
	hm_fmt(m->socket, sizeof m->socket, HAMI_SOCKET_PREFIX "%s" HAMI_SOCKET_SUFFIX, n > 60 ? name + n - 60 : name);
}

int hami_mode_new(struct loop *l, const struct hami_mode_config *config, struct hami_mode **out, struct hm_err *e)
{
	const struct cluster_config cluster = { config->options->kubeconfig, config->options->node_name, true };
	hm_auto(hami_mode) *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "mode hami");
	m->config = *config;
	name_socket(m);
	if (cluster_new(l, &cluster, &m->cluster, e) < 0 || node_object_new(m->cluster, &m->node, e) < 0)
		return -e->code;
	*out = HM_STEAL(m);
	return 0;
}

void hami_mode_free(struct hami_mode *m)
{
	if (m == NULL)
		return;
	node_object_free(m->node);
	cluster_free(m->cluster);
	free(m);
}

int hami_mode_offer(struct hami_mode *m, struct offer **out, struct hm_err *e)
{
	const struct offer_hami_config config = { m->config.options, m->config.claims };

	return offer_hami_new(&config, out, e);
}

const char *hami_mode_socket(const struct hami_mode *m)
{
	return m->socket;
}

void hami_mode_take(struct hami_mode *m, const struct fleet *f)
{
	m->fleet = f;
}

struct cluster *hami_mode_cluster(const struct hami_mode *m)
{
	return m->cluster;
}
