#include "agent/serve/mig_static.h"

#include <stdlib.h>
#include <string.h>

#include "agent/serve/offer_mig.h"
#include "base/log.h"
#include "contract/hami.h"
#include "core/fmt.h"

struct mig_static {
	struct loop *loop;
	struct resource_config config;
	bool stopped;
	struct {
		char profile[MIG_NAME_BYTES], socket[96];
		struct resource *resource;
	} items[MIG_STATIC_MAX];
	size_t count;
};

int mig_static_new(struct loop *l, const struct resource_config *resource, struct mig_static **out, struct hm_err *e)
{
	struct mig_static *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "MIG resources");
	m->loop = l;
	m->config = *resource;
	*out = m;
	return 0;
}

void mig_static_free(struct mig_static *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->count; i++)
		resource_free(m->items[i].resource);
	free(m);
}

static bool is_known(const struct mig_static *m, const char *profile)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->items[i].profile, profile) == 0)
			return true;
	return false;
}

/* "nvidia.com/mig-1g.5gb.me" is served on "nvidia-mig-1g.5gb.me.sock", as HAMi's plugin has it. */
static int add(struct mig_static *m, const char *profile, struct hm_err *e)
{
	struct offer_mig_config offer = { .options = m->config.service.options,
					  .claims = m->config.service.claims,
					  .profile = profile };
	char name[64], *socket = m->items[m->count % MIG_STATIC_MAX].socket;
	struct resource_config config = m->config;
	struct offer *made;

	if (m->count == MIG_STATIC_MAX)
		return hm_err_set(e, HM_ELIMIT, "more than %d MIG profiles on a node", MIG_STATIC_MAX);
	if (!mig_resource_name(profile, name, sizeof name))
		return hm_err_set(e, HM_EINVAL, "MIG profile %s makes no resource name", profile);
	hm_fmt(socket, sizeof m->items[0].socket, HAMI_SOCKET_PREFIX "%s" HAMI_SOCKET_SUFFIX, strchr(name, '/') + 1);
	offer.resource = name;
	config.socket = socket;
	if (offer_mig_new(&offer, &made, e) < 0 ||
	    resource_new(m->loop, made, &config, &m->items[m->count].resource, e) < 0)
		return -e->code;
	hm_fmt(m->items[m->count].profile, sizeof m->items[m->count].profile, "%s", profile);
	m->count++;
	log_info("a resource for MIG devices", KV("resource", name));
	return 0;
}

static int add_new(struct mig_static *m, const struct card *card, struct hm_err *e)
{
	for (size_t i = 0; i < card->mig.device_count; i++) {
		const struct mig_device *d = &card->mig.devices[i];

		if (!offer_mig_counts(d))
			log_warn("a MIG device without all of its instance's compute slices is not offered",
				 KV("uuid", d->uuid), KV("profile", d->profile));
		else if (!is_known(m, d->profile) && add(m, d->profile, e) < 0)
			return -e->code;
	}
	return 0;
}

int mig_static_take(struct mig_static *m, const struct fleet *f, struct hm_err *e)
{
	const struct inventory *inv = fleet_inventory(f);

	for (size_t i = 0; !m->stopped && i < inv->count; i++)
		if (add_new(m, &inv->cards[i], e) < 0)
			return -e->code;
	for (size_t i = 0; i < m->count; i++) {
		if (resource_take(m->items[i].resource, f, e) < 0)
			return -e->code;
		resource_start(m->items[i].resource);
	}
	return 0;
}

void mig_static_stop(struct mig_static *m)
{
	m->stopped = true;
	for (size_t i = 0; i < m->count; i++)
		resource_stop(m->items[i].resource);
}

size_t mig_static_count(const struct mig_static *m)
{
	return m->count;
}

struct resource *mig_static_at(const struct mig_static *m, size_t i)
{
	return m->items[i].resource;
}
