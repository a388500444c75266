#include "vgpu/gate.h"

uint64_t gate_ask(struct gate *g, uint64_t now, uint64_t estimate_ns, bool crowded)
{
	int64_t charge = gate_charge(estimate_ns), weight = gate_weight(estimate_ns), missing;
	uint64_t wait;

	if (!crowded && !gate_has_room(g, weight))
		return GATE_POLL_NS;
	if (gate_pass(g, estimate_ns))
		return 0;
	/* An estimate above the credit is taken whole; the credit stays for small ones. */
	missing = charge >= GATE_CREDIT_NS ? charge : charge + GATE_CREDIT_NS;
	wait = bucket_take(g->shared, g->share, now, (uint64_t)missing);
	if (wait != 0)
		return wait;
	atomic_fetch_add_explicit(&g->taken_ns, weight + missing - charge, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->credit_ns, missing - charge, memory_order_relaxed);
	return 0;
}

void gate_force(struct gate *g, uint64_t now, uint64_t estimate_ns)
{
	bucket_settle(g->shared, g->share, now, gate_charge(estimate_ns));
	atomic_fetch_add_explicit(&g->taken_ns, gate_weight(estimate_ns), memory_order_relaxed);
}

void gate_cancel(struct gate *g, uint64_t estimate_ns)
{
	/* A large charge would stay as credit, and let as much through at once; one of 10 s is rather lost. */
	int64_t back = HM_MIN(gate_charge(estimate_ns), GATE_CREDIT_NS);

	atomic_fetch_add_explicit(&g->taken_ns, back - gate_weight(estimate_ns), memory_order_relaxed);
	atomic_fetch_add_explicit(&g->credit_ns, back, memory_order_relaxed);
}

void gate_done(struct gate *g, uint64_t now, uint64_t estimate_ns, uint64_t span_ns, uint32_t launches,
	       int64_t launched_ns)
{
	int64_t done = atomic_load_explicit(&g->done_ns, memory_order_relaxed);
	int64_t more = (int64_t)HM_MIN(span_ns, UINT64_C(3600000000000)) - gate_charge(estimate_ns);

	while (done < launched_ns && !atomic_compare_exchange_weak(&g->done_ns, &done, launched_ns))
		;
	bucket_settle(g->shared, g->share, now, more * (int64_t)launches);
}

void gate_idle(struct gate *g)
{
	atomic_store_explicit(&g->done_ns, gate_launched(g), memory_order_relaxed);
}
