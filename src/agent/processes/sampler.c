#include "agent/processes/sampler.h"

#include <stdlib.h>

#include "agent/processes/shares.h"
#include "agent/processes/sight.h"
#include "base/array.h"
#include "base/log.h"

struct sampler {
	struct loop *loop;
	struct sampler_config config;
	struct loop_timer *timer;
	bool sees; /* the node's processes */
	bool blind_said, untold_said;
	uint64_t looked_ms, set_ms, begun_ms;
	/* The worker's between submit and done. */
	struct worker_job job;
	bool changed;
	struct shares_container *containers;
	size_t count, cap;
	struct shares *shares;
	const char *untold;
	bool wanted, at_work;
};

static uint64_t now_ns(const struct sampler *s)
{
	return loop_now_us(s->loop) * 1000;
}

static void in_worker(struct worker_job *job)
{
	struct sampler *s = HM_CONTAINER(job, struct sampler, job);
	bool before = s->wanted;

	if (s->changed)
		shares_set(s->shares, s->containers, s->count);
	s->wanted = shares_wanted(s->shares);
	s->untold = NULL;
	if (!s->wanted && !before) /* one pass more takes back what was written */
		return;
	shares_read(s->shares, driver_gpu(s->config.driver));
	shares_apply(s->shares, now_ns(s), clock_wall_ms() * 1000);
	s->untold = shares_untold(s->shares);
	s->at_work = shares_at_work(s->shares);
}

/* Where memory is short, as many as there is room for. */
static void collect(struct sampler *s)
{
	s->count = 0;
	for (size_t i = 0; i < claims_count(s->config.claims); i++) {
		const struct claim *c = claims_at(s->config.claims, i);
		bool held = s->config.monitor != NULL && hami_monitor_holds(s->config.monitor, c->number);

		if (c->state == CLAIM_ACTIVE &&
		    !HM_PUSH(s->containers, s->count, s->cap, (struct shares_container) { c->number, held }))
			break;
	}
}

/* Without the host's pids nobody can say whose the driver's samples are. */
static bool sees_processes(struct sampler *s)
{
	uint64_t now = loop_now_ms(s->loop);

	if (s->sees || (s->looked_ms != 0 && now - s->looked_ms < SAMPLER_SIGHT_MS))
		return s->sees;
	s->looked_ms = now;
	s->sees = sight_of_node(s->config.proc, s->config.paths->kubelet_socket.s);
	if (!s->sees && !s->blind_said)
		log_warn("cannot see whose the processes on a card are: give this pod hostPID. Until then containers "
			 "that share a card may get down to half of their share of its time, and policy default limits "
			 "always");
	s->blind_said = true;
	return s->sees;
}

static void on_timer(void *arg)
{
	struct sampler *s = arg;
	uint64_t now = loop_now_ms(s->loop);

	s->changed = s->set_ms == 0 || now - s->set_ms >= SAMPLER_REST_MS;
	if (s->changed) {
		s->set_ms = now;
		collect(s);
	}
	if ((s->count == 0 && !s->wanted) || !sees_processes(s)) {
		loop_timer_arm(s->timer, SAMPLER_REST_MS);
		return;
	}
	s->begun_ms = now;
	worker_submit(s->config.worker, &s->job);
}

static void on_done(struct worker_job *job)
{
	struct sampler *s = HM_CONTAINER(job, struct sampler, job);
	uint64_t took = loop_now_ms(s->loop) - s->begun_ms, every = SAMPLER_REST_MS;

	if (s->wanted)
		every = s->at_work ? SAMPLER_EVERY_MS : SAMPLER_IDLE_MS;
	if (s->config.monitor != NULL)
		shares_tell_busy(s->shares, hami_monitor_note_busy, s->config.monitor);
	if (s->untold != NULL)
		log_warn("the driver does not tell whose processes are at work on a card: containers that share it may "
			 "get down to half of their share of its time, and policy default limits always",
			 KV("uuid", s->untold));
	loop_timer_arm(s->timer, took < every ? every - took : 1);
}

int sampler_new(struct loop *l, const struct sampler_config *config, struct sampler **out, struct hm_err *e)
{
	struct sampler *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "sampler");
	s->loop = l;
	s->config = *config;
	s->job = (struct worker_job) { in_worker, on_done, NULL };
	if (shares_new(config->paths, config->proc, config->monitor != NULL, &s->shares, e) < 0 ||
	    loop_timer_new(l, on_timer, s, &s->timer, e) < 0) {
		shares_free(s->shares);
		free(s);
		return hm_err_wrap(e, "sampler");
	}
	loop_timer_arm(s->timer, SAMPLER_EVERY_MS);
	*out = s;
	return 0;
}

void sampler_free(struct sampler *s)
{
	if (s == NULL)
		return;
	loop_timer_free(s->timer);
	if (s->job.pending)
		return; /* the hung call still uses the job */
	shares_free(s->shares);
	free(s->containers);
	free(s);
}
