#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits.h>
#include <linux/futex.h>

#include "base/log.h"
#include "core/fmt.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_mig.h"
#include "sim/simd/server.h"

static void fail(struct sim_reply *r, const char *text)
{
	r->result = SIM_FAILED;
	hm_fmt(r->text, sizeof r->text, "%s", text);
}

/* xid 0: a double-bit ECC error; instances as SIM_OP_XID's b. */
static void post_event(struct server *s, unsigned card, uint32_t xid, uint64_t instances)
{
	struct sim_node *n = s->node;
	uint64_t head = atomic_load(&n->event_head);
	struct sim_event *event = &n->events[head % SIM_EVENTS];

	atomic_store(&event->sequence, 0);
	event->card = card;
	event->xid = xid;
	event->gpu_instance = (uint32_t)(instances >> 32);
	event->compute_instance = (uint32_t)instances;
	event->at_ns = sim_clock_now(n);
	atomic_store(&event->sequence, head + 1);
	atomic_store(&n->event_head, head + 1);
	atomic_store(&n->event_wake, (uint32_t)(head + 1));
	syscall(SYS_futex, &n->event_wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* What the processes had on the card is gone; they find their epoch outdated. */
static void drop_card(struct server *s, unsigned card)
{
	struct sim_card *c = &s->node->cards[card];

	server_lock_card(s, card);
	sim_engine_advance(s->node, card, sim_clock_now(s->node));
	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		uint32_t epoch = atomic_load(&c->shares[i].epoch);

		sim_share_clear(c, i);
		atomic_store(&c->shares[i].epoch, epoch);
	}
	sim_mig_reset(c);
	atomic_fetch_add(&c->epoch, 1);
	sim_card_unlock(c);
}

static void lose_card(struct server *s, unsigned card, struct sim_reply *r)
{
	if (atomic_load(&s->node->cards[card].lost) != 0) {
		fail(r, "the card is lost already");
		return;
	}
	atomic_store(&s->node->cards[card].lost, 1);
	drop_card(s, card);
	post_event(s, card, 79, UINT64_MAX); /* "GPU has fallen off the bus" */
	clock_turn(s);
}

static void reset_card(struct sim_card *c)
{
	atomic_store(&c->lost, 0);
	atomic_store(&c->ecc_uncorrected, 0);
	atomic_store(&c->rows_pending, 0);
	atomic_store(&c->action, 0);
}

static void set_fault(struct server *s, const struct sim_request *q, struct sim_reply *r)
{
	struct sim_card *c = &s->node->cards[q->card];
	struct sim_fault *spot = NULL;

	for (unsigned i = 0; i < SIM_MAX_FAULTS; i++) {
		struct sim_fault *f = &c->faults[i];

		if (atomic_load(&f->code) != 0 && strcmp(f->call, q->text) == 0) {
			atomic_store(&f->code, (int32_t)q->a);
			return;
		}
		if (spot == NULL && atomic_load(&f->code) == 0)
			spot = f;
	}
	if (q->a == 0)
		return;
	if (spot == NULL) {
		fail(r, "too many faults on this card; clear some with code 0");
		return;
	}
	memcpy(spot->call, q->text, sizeof spot->call);
	atomic_store_explicit(&spot->code, (int32_t)q->a, memory_order_release);
}

/* Whom to end is what the kernel said of the connection: the shared memory is the clients' to write. */
static void release_holders(struct server *s, unsigned card, struct sim_reply *r)
{
	LIST_FOR_EACH (&s->clients, l) {
		const struct client *c = HM_CONTAINER(l, struct client, on);

		if (c->process == NO_PROCESS || c->pid == 0 ||
		    atomic_load(&s->node->processes[c->process].holder) == 0 ||
		    atomic_load(&s->node->cards[card].shares[c->process].data_bytes) == 0)
			continue;
		kill((pid_t)c->pid, SIGTERM);
		r->a++;
	}
}

static void reload_driver(struct server *s, uint64_t down_ns)
{
	atomic_store(&s->node->loaded, 0);
	atomic_fetch_add(&s->node->generation, 1);
	LIST_FOR_EACH (&s->clients, l)
		server_end_process(s, HM_CONTAINER(l, struct client, on));
	for (unsigned i = 0; i < s->node->card_count; i++) {
		reset_card(&s->node->cards[i]);
		sim_mig_reset(&s->node->cards[i]);
	}
	log_info("driver unloaded", KV_U64("back_in_ms", down_ns / 1000000));
	if (down_ns == 0)
		atomic_store(&s->node->loaded, 1);
	else
		loop_timer_arm(s->reload, down_ns / 1000000);
}

void control_run(struct server *s, const struct sim_request *q, struct sim_reply *r)
{
	struct sim_card *card = &s->node->cards[q->card % SIM_MAX_CARDS];

	if (q->card >= s->node->card_count && q->op != SIM_OP_RELOAD && q->op != SIM_OP_STOP) {
		r->result = SIM_NO_CARD;
		return;
	}
	switch (q->op) {
	case SIM_OP_XID: post_event(s, q->card, (uint32_t)q->a, q->b); break;
	case SIM_OP_LOST: lose_card(s, q->card, r); break;
	case SIM_OP_RECOVER: reset_card(card); break;
	case SIM_OP_ECC:
		atomic_fetch_add(&card->ecc_uncorrected, q->a);
		post_event(s, q->card, 0, UINT64_MAX);
		break;
	case SIM_OP_ROWS:
		atomic_store(&card->rows_pending, q->a != 0);
		atomic_store(&card->rows_failed, q->b != 0);
		break;
	case SIM_OP_ACTION: atomic_store(&card->action, (uint32_t)q->a); break;
	case SIM_OP_EVENTS: atomic_store(&card->no_events, q->a == 0); break;
	case SIM_OP_NVML_ERROR: set_fault(s, q, r); break;
	case SIM_OP_NVML_HANG: atomic_store(&card->hang_until_ns, q->a == 0 ? 0 : sim_monotonic_ns() + q->a); break;
	case SIM_OP_RELEASE: release_holders(s, q->card, r); break;
	case SIM_OP_RELOAD: reload_driver(s, q->a); break;
	case SIM_OP_STOP: loop_stop(s->loop); break;
	case SIM_OP_MIG_MODE:
	case SIM_OP_MIG_CREATE_GI:
	case SIM_OP_MIG_CREATE_CI:
	case SIM_OP_MIG_DESTROY_GI:
	case SIM_OP_MIG_DESTROY_CI: mig_run(s, q, r); break;
	default: fail(r, "unknown request");
	}
}
