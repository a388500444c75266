/* MIG's changes. The daemon makes them, one at a time, so that a client that dies in the middle leaves nothing half
 * made. */
#include "abi/nvml_mig.h"
#include "base/log.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_mig.h"
#include "sim/simd/server.h"

void mig_run(struct server *s, const struct sim_request *q, struct sim_reply *r)
{
	struct sim_card *c = &s->node->cards[q->card];
	int code = NVML_ERROR_INVALID_ARGUMENT, activation = 0;
	unsigned place = 0;

	server_lock_card(s, q->card);
	switch (q->op) {
	case SIM_OP_MIG_MODE:
		code = sim_mig_set_mode(c, q->a != 0, &activation);
		r->b = (uint64_t)activation;
		break;
	case SIM_OP_MIG_CREATE_GI:
		code = sim_mig_create_gi(c, (uint32_t)q->a, q->b == SIM_MIG_ANY ? UINT32_MAX : (uint32_t)q->b, &place);
		r->b = place;
		break;
	case SIM_OP_MIG_CREATE_CI:
		code = sim_mig_create_ci(c, (unsigned)q->a, (uint32_t)q->b, &place);
		r->b = place;
		break;
	case SIM_OP_MIG_DESTROY_GI: code = sim_mig_destroy_gi(c, (unsigned)q->a); break;
	case SIM_OP_MIG_DESTROY_CI: code = sim_mig_destroy_ci(c, (unsigned)q->a); break;
	}
	sim_card_unlock(c);
	r->a = (uint64_t)code;
	log_info("mig", KV_U64("op", q->op), KV_U64("card", q->card), KV_U64("a", q->a), KV_U64("b", q->b),
		 KV_U64("nvml", (unsigned)code));
}

void mig_come_up(struct sim_card *c)
{
	c->mig_pending = c->info.mig_enabled;
	sim_mig_reset(c);
	for (unsigned i = 0; i < c->info.mig_static_count; i++) {
		const struct sim_mig_static *m = &c->info.mig_static[i];
		const struct sim_mig_profile *p = &c->info.mig_profiles[m->profile];
		unsigned gi = 0, ci = 0;

		if (sim_mig_create_gi(c, p->profile_id, m->start, &gi) != NVML_SUCCESS ||
		    sim_mig_create_ci(c, gi, p->slices, &ci) != NVML_SUCCESS)
			log_warn("no room for a MIG instance of the node's file", KV("uuid", c->info.uuid),
				 KV("profile", p->name));
	}
}
