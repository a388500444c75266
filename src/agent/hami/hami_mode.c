#include "agent/hami/hami_mode.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cards/card_pause.h"
#include "agent/cards/hami_cards.h"
#include "agent/cards/mig_cards.h"
#include "agent/cluster/node_object.h"
#include "agent/cluster/publish.h"
#include "agent/hami/binding_choice.h"
#include "agent/hami/hami_pods.h"
#include "agent/hami/offer_hami.h"
#include "base/log.h"
#include "contract/hami.h"
#include "core/fmt.h"

struct hami_mode {
	struct hami_mode_config config;
	char socket[80];
	struct node_object *node;
	struct publish *publish;
	struct card_pause *pause;
	struct binding_choice *choice;
	bool asymmetry_told;
	struct hami_pods *pods;
	struct mig_manager *mig;   /* NULL: another operating mode */
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

static void tell_asymmetry(struct hami_mode *m, bool asymmetric)
{
	if (asymmetric && !m->asymmetry_told)
		cluster_tell_node(m->config.cluster, "Warning", "AsymmetricGPUP2PLink",
				  "One or more GPU pairs on this node have asymmetric P2P link data; affected pairs "
				  "scored 0 (possible NVLink hardware or driver issue)");
	m->asymmetry_told = asymmetric;
}

/* A Node without sick cards has no such annotation, unless it had one. */
static void health_text(const struct hami_mode *m, struct str *out)
{
	const struct node_view *view = node_object_view(m->node);

	if (m->config.cards == NULL)
		return;
	card_health_json(m->config.cards, out);
	if (strcmp(str_text(out), "[]") == 0 && (view == NULL || view->annotations[NODE_HEALTH] == NULL))
		str_clear(out);
}

/* Without a score the cards are registered all the same. */
static int publish_texts(void *arg, struct publish_texts *out, struct hm_err *e)
{
	struct hami_mode *m = arg;
	const struct agent_options *o = m->config.options;
	const struct hami_profiles profiles = { mig_cards_add, (void *)(uintptr_t)&o->hami };
	bool asymmetric;

	if (hami_cards_register_text(m->fleet, o, &profiles, &out->texts[NODE_REGISTER], e) < 0)
		return -e->code;
	health_text(m, &out->texts[NODE_HEALTH]);
	if (!o->hami.topology_score)
		return 0;
	if (hami_cards_score_text(m->fleet, &o->hami, &out->texts[NODE_SCORE], &asymmetric, e) == 0) {
		tell_asymmetry(m, asymmetric);
	} else {
		log_warn("the cards' topology score is not published", KV_ERR(e));
		str_fini(&out->texts[NODE_SCORE]);
	}
	return 0;
}

static int make_mig(struct loop *l, struct hami_mode *m, struct hm_err *e)
{
	const struct mig_manager_config config = { .options = m->config.options,
						   .worker = m->config.worker,
						   .driver = m->config.driver,
						   .pods = hami_pods_watched(m->pods),
						   .claims = m->config.claims,
						   .cluster = m->config.cluster,
						   .pause = m->pause,
						   .late = hami_pods_late(m->pods) };

	if (!mig_cards_wanted(&m->config.options->hami))
		return 0;
	if (mig_manager_new(l, &config, &m->mig, e) < 0)
		return -e->code;
	hami_late_set_mig(hami_pods_late(m->pods), m->mig);
	return 0;
}

int hami_mode_new(struct loop *l, const struct hami_mode_config *config, struct hami_mode **out, struct hm_err *e)
{
	struct publish_config publish = { .texts = publish_texts };
	hm_auto(hami_mode) *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "mode hami");
	m->config = *config;
	name_socket(m);
	if (node_object_new(config->cluster, &m->node, e) < 0)
		return -e->code;
	const struct hami_pods_config pods = { config->options, config->paths, config->claims, config->cluster,
					       m->node };

	const struct binding_choice_config choice = { .cluster = config->cluster,
						      .node = m->node,
						      .options = config->options,
						      .path = config->paths->runtime.s,
						      .other = config->restart,
						      .arg = config->arg };

	publish.node = m->node;
	publish.arg = m;
	if (publish_new(l, &publish, &m->publish, e) < 0 ||
	    card_pause_new(m->publish, HAMI_APPLY_LOCK_DIR, &m->pause, e) < 0 ||
	    binding_choice_new(&choice, &m->choice, e) < 0 || hami_pods_new(&pods, &m->pods, e) < 0 ||
	    make_mig(l, m, e) < 0)
		return -e->code;
	*out = HM_STEAL(m);
	return 0;
}

void hami_mode_free(struct hami_mode *m)
{
	if (m == NULL)
		return;
	mig_manager_free(m->mig);
	hami_pods_free(m->pods);
	binding_choice_free(m->choice);
	card_pause_free(m->pause);
	publish_free(m->publish);
	node_object_free(m->node);
	free(m);
}

int hami_mode_offer(struct hami_mode *m, struct offer **out, struct hm_err *e)
{
	const struct offer_hami_config config = { m->config.options, m->config.claims, hami_pods_late(m->pods),
						  hami_pods_classic(m->pods) };

	return offer_hami_new(&config, out, e);
}

const char *hami_mode_socket(const struct hami_mode *m)
{
	return m->socket;
}

void hami_mode_take(struct hami_mode *m, const struct fleet *f)
{
	m->fleet = f;
	hami_pods_take(m->pods, fleet_inventory(f));
	if (m->mig != NULL)
		mig_manager_take(m->mig, f);
	publish_now(m->publish);
}

struct publish *hami_mode_publish(const struct hami_mode *m)
{
	return m->publish;
}

struct mig_manager *hami_mode_mig(const struct hami_mode *m)
{
	return m->mig;
}

struct hami_pods *hami_mode_pods(const struct hami_mode *m)
{
	return m->pods;
}
