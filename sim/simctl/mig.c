/* MIG by hand: `gpu N mig ...`, and the capability nodes that the driver makes for instances. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/str.h"
#include "core/fmt.h"
#include "core/num.h"
#include "io/file.h"
#include "sim/lib/sim_mig.h"
#include "sim/lib/sim_visible.h"
#include "sim/simctl/simctl.h"

/* ---- gpu N mig VERB ARGUMENTS */

static int check(const struct sim_reply *reply, struct hm_err *e)
{
	switch ((int)reply->a) {
	case NVML_SUCCESS: return 0;
	case NVML_ERROR_IN_USE: return hm_err_set(e, HM_EAGAIN, "it is in use");
	case NVML_ERROR_INSUFFICIENT_RESOURCES: return hm_err_set(e, HM_ELIMIT, "there is no room for it");
	case NVML_ERROR_NOT_SUPPORTED: return hm_err_set(e, HM_EUNSUPPORTED, "MIG is not enabled on it, or not there");
	default: return hm_err_set(e, HM_EINVAL, "NVML's answer is %llu", (unsigned long long)reply->a);
	}
}

static int set_mode(const struct simctl *c, unsigned card, bool on, struct hm_err *e)
{
	struct sim_request q = { .op = SIM_OP_MIG_MODE, .card = card, .a = on };
	struct sim_reply reply;
	int r = simctl_ask(c, q, &reply, e);

	if (r == 0)
		r = check(&reply, e);
	if (r == 0 && reply.b != NVML_SUCCESS)
		return hm_err_set(e, HM_EAGAIN, "the card is in use: the mode is pending until driver-reload");
	return r;
}

static const struct sim_mig_profile *find_profile(const struct sim_card *c, const char *name)
{
	for (unsigned i = 0; i < c->info.mig_profile_count; i++)
		if (strcmp(c->info.mig_profiles[i].name, name) == 0)
			return &c->info.mig_profiles[i];
	return NULL;
}

static int create(const struct simctl *c, const struct sim_card *card, unsigned number, struct hm_err *e)
{
	const struct sim_mig_profile *p = find_profile(card, c->words[3]);
	struct sim_request q = { .op = SIM_OP_MIG_CREATE_GI, .card = number, .b = SIM_MIG_ANY };
	struct sim_reply reply;
	int r;

	if (p == NULL)
		return hm_err_set(e, HM_EINVAL, "PROFILE: \"%s\" is none of the card's", c->words[3]);
	if (c->word_count > 4 && !num_u64_str(c->words[4], SIM_MIG_SLICES - 1, &q.b))
		return hm_err_set(e, HM_EINVAL, "START: \"%s\" is no memory slice", c->words[4]);
	q.a = p->profile_id;
	r = simctl_ask(c, q, &reply, e);
	if (r == 0)
		r = check(&reply, e);
	if (r < 0)
		return r;
	q = (struct sim_request) { .op = SIM_OP_MIG_CREATE_CI, .card = number, .a = reply.b, .b = p->slices };
	r = simctl_ask(c, q, &reply, e);
	if (r == 0)
		r = check(&reply, e);
	if (r == 0)
		printf("%s\n", card->mig_cis[reply.b % SIM_MIG_INSTANCES].uuid);
	return r;
}

static int destroy(const struct simctl *c, const struct sim_card *card, unsigned number, struct hm_err *e)
{
	struct sim_request q = { .op = SIM_OP_MIG_DESTROY_CI, .card = number };
	unsigned on = 0;
	int place = sim_visible_mig(sim_node(), c->words[3], strlen(c->words[3]), &on), r;
	struct sim_reply reply;
	unsigned gi;

	if (place < 0 || on != number)
		return hm_err_set(e, HM_EINVAL, "UUID: \"%s\" is no MIG device of the card", c->words[3]);
	gi = card->mig_cis[place].gi;
	q.a = (uint64_t)place;
	r = simctl_ask(c, q, &reply, e);
	if (r == 0)
		r = check(&reply, e);
	if (r < 0)
		return r;
	r = simctl_ask(c, (struct sim_request) { .op = SIM_OP_MIG_DESTROY_GI, .card = number, .a = gi }, &reply, e);
	return r == 0 ? check(&reply, e) : r;
}

int simctl_mig(const struct simctl *c, const struct sim_node *node, unsigned number, struct hm_err *e)
{
	const char *verb = c->word_count > 2 ? c->words[2] : "";
	const struct sim_card *card = &node->cards[number];

	if (c->word_count == 3 && (strcmp(verb, "on") == 0 || strcmp(verb, "off") == 0))
		return set_mode(c, number, strcmp(verb, "on") == 0, e);
	if ((c->word_count == 4 || c->word_count == 5) && strcmp(verb, "create") == 0)
		return create(c, card, number, e);
	if (c->word_count == 4 && strcmp(verb, "destroy") == 0)
		return destroy(c, card, number, e);
	return hm_err_set(e, HM_EINVAL, "gpu N mig: on, off, create PROFILE [START] or destroy UUID");
}

/* ---- Capabilities: which node under dev/nvidia-caps opens which instance */

enum { FIRST_MINOR = 3, MAX_GIS = 15, MAX_CIS = 8 }; /* as the driver numbers them: 1 and 2 are config and monitor */

static int make_cap(const char *dir, unsigned minor, struct hm_err *e)
{
	char name[48];

	hm_fmt(name, sizeof name, "nvidia-caps/nvidia-cap%u", minor);
	return simctl_make_node(dir, name, e);
}

/* The card's lines, and the nodes of its instances; every number is listed, as the driver lists them. */
static int add_card(const char *dir, const struct sim_card_info *card, struct str *text, struct hm_err *e)
{
	unsigned minor = FIRST_MINOR + card->minor * MAX_GIS * (MAX_CIS + 1);
	int r = 0;

	for (unsigned gi = 0; gi < MAX_GIS; gi++) {
		if (r == 0 && card->mig_capable != 0)
			r = make_cap(dir, minor, e);
		str_addf(text, "gpu%u/gi%u/access %u\n", card->minor, gi, minor++);
		for (unsigned ci = 0; ci < MAX_CIS; ci++) {
			if (r == 0 && card->mig_capable != 0)
				r = make_cap(dir, minor, e);
			str_addf(text, "gpu%u/gi%u/ci%u/access %u\n", card->minor, gi, ci, minor++);
		}
	}
	return r;
}

int simctl_make_caps(const char *dir, const struct sim_node *node, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	char path[PATH_MAX];
	bool any = false;
	int r;

	for (unsigned i = 0; i < node->card_count; i++)
		any |= node->cards[i].info.mig_capable != 0;
	if (!any)
		return 0;
	hm_fmt(path, sizeof path, "%s/dev/nvidia-caps", dir);
	r = file_mkdirs(path, 0755, e);
	str_add(&text, "config 1\nmonitor 2\n");
	for (unsigned i = 0; r == 0 && i < node->card_count; i++)
		r = add_card(dir, &node->cards[i].info, &text, e);
	if (r < 0)
		return r;
	hm_fmt(path, sizeof path, "%s/proc/driver/nvidia-caps", dir);
	r = file_mkdirs(path, 0755, e);
	if (r < 0)
		return r;
	if (str_failed(&text))
		return hm_err_set(e, HM_ENOMEM, "capabilities");
	hm_fmt(path, sizeof path, "%s/proc/driver/nvidia-caps/mig-minors", dir);
	return file_replace(path, str_text(&text), text.n, 0644, e);
}
