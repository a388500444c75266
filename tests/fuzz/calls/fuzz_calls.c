/* Sequences of driver calls from several processes of one container, against a model: after each call the region, the
 * model and what the driver gave must agree.
 *
 * usage: fuzz_calls [--seed N] [--steps N] [--rounds N] [--race]
 *
 * The same seed gives the same run: processes take turns. With --race all of a round run at the same time, and what
 * depends on the others is not compared. Some processes are killed, in the middle of a call too, and replaced; some
 * fork. A round has a region, limits and a kind of driver of its own, its seed is N, N + 1, ... */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/container.h"
#include "core/num.h"
#include "fuzz/calls/model.h"
#include "vgpu/state.h"

enum { CHILDREN = FAKE_PROCESSES / 2, TURN_STEPS = 64, CHANGES_MAX = 200 };

struct turn {
	uint64_t step;
	uint32_t steps; /* 0: free all, and end */
	uint32_t die;   /* 0, or the change of the driver's books at which the process is killed */
};

struct child {
	pid_t pid;
	int fd;
	bool dies;
};

struct run {
	uint64_t seed, steps;
	bool race;
	struct fake_world *world;
	struct child children[CHILDREN];
	unsigned born; /* of this round */
	unsigned processes, killed;
};

static void step_fork(void);

static const struct step *const tables[] = { memory_steps, device_steps, multicast_steps };

static void one_step(void)
{
	uint32_t sum = 0, at;

	for (unsigned t = 0; t < HM_COUNT(tables); t++) {
		for (const struct step *s = tables[t]; s->name != NULL; s++)
			sum += s->weight;
	}
	at = random_below(sum);
	for (unsigned t = 0; t < HM_COUNT(tables); t++) {
		for (const struct step *s = tables[t]; s->name != NULL; s++) {
			if (at < s->weight) {
				me.doing = s->name;
				s->run();
				return;
			}
			at -= s->weight;
		}
	}
}

static void run_steps(uint32_t steps, bool may_fork)
{
	for (uint32_t i = 0; i < steps; i++, me.step++) {
		if (random_below(32) == 0)
			fake_fail_next(random_below(2) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
		if (may_fork && random_below(4096) == 0) {
			me.doing = "fork";
			step_fork();
		} else {
			one_step();
		}
		fake_failed();
		check_books();
	}
}

static void begin(unsigned index, uint64_t random)
{
	memset(&me.m, 0, sizeof me.m);
	me.index = index;
	me.random = random * UINT64_C(0x9e3779b97f4a7c15) | 1;
	me.m.may_manage = random_below(4) == 0;
	fake_attach(me.world, index);
}

/* A child without exec has nothing, and a slot of its own; what it leaves behind is a dead process's. */
static void step_fork(void)
{
	uint64_t random = random_below(UINT32_MAX);
	unsigned index = me.index + CHILDREN;
	bool dies = random_below(2);
	int status = 0;
	pid_t pid;

	fake_failed();
	pid = fork();
	if (pid == 0) {
		begin(index, random);
		if (dies)
			fake_die_at(1 + random_below(CHANGES_MAX));
		run_steps(TURN_STEPS, false);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0) &&
	    !(dies && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		_exit(1);
	fake_bury(me.world, index);
}

static void finish(void)
{
	me.doing = "the end";
	fake_failed();
	release_all();
	check_books();
	for (int card = 0; card < FAKE_CARDS; card++) {
		struct vgpu *v = vgpu_get();

		vgpu_card_used(v, vgpu_card_of(v, card));
		check_sum(card);
		if (me.world->processes[me.index].charged[card] != 0 || me.world->processes[me.index].taken[card] != 0)
			fail("card %d has something left", card);
	}
}

static _Noreturn void child_main(struct run *r, unsigned index, unsigned born, int fd)
{
	struct turn t;

	me.world = r->world;
	me.seed = r->seed;
	me.alone = !r->race;
	me.doing = "the begin";
	begin(index, r->seed * 1000 + born);
	while (read(fd, &t, sizeof t) == sizeof t) {
		me.step = t.step;
		if (t.steps == 0) {
			me.alone = true;
			finish();
			_exit(0);
		}
		fake_die_at(t.die);
		run_steps(t.steps, me.alone);
		if (t.die != 0)
			fake_die();
		if (write(fd, "", 1) != 1)
			_exit(1);
	}
	_exit(1);
}

static bool start(struct run *r, unsigned index)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	r->born++;
	r->processes++;
	pid = fork();
	if (pid == 0) {
		for (unsigned i = 0; i < CHILDREN; i++) {
			if (r->children[i].pid != 0)
				close(r->children[i].fd);
		}
		close(fds[0]);
		child_main(r, index, r->born, fds[1]);
	}
	close(fds[1]);
	r->children[index] = (struct child) { .pid = pid, .fd = fds[0] };
	return pid > 0;
}

static bool give_turn(struct run *r, unsigned index, uint64_t step, uint32_t steps)
{
	struct child *c = &r->children[index];
	struct turn t = { .step = step, .steps = steps };

	c->dies = steps != 0 && random_below(16) == 0;
	if (c->dies)
		t.die = 1 + random_below(CHANGES_MAX);
	return send(c->fd, &t, sizeof t, MSG_NOSIGNAL) == sizeof t;
}

/* False: it has failed, and said why. */
static bool end_turn(struct run *r, unsigned index, bool ends)
{
	struct child *c = &r->children[index];
	int status = 0;
	char done;

	if (!ends && read(c->fd, &done, 1) == 1)
		return true;
	close(c->fd);
	waitpid(c->pid, &status, 0);
	c->pid = 0;
	if (ends)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!c->dies || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return false;
	r->killed++;
	fake_bury(r->world, index);
	return start(r, index);
}

static bool take_turns(struct run *r)
{
	uint64_t step = 0;

	while (step < r->steps) {
		unsigned from = r->race ? 0 : random_below(CHILDREN), to = r->race ? CHILDREN : from + 1;

		for (unsigned i = from; i < to; i++, step += TURN_STEPS) {
			if (!give_turn(r, i, step, TURN_STEPS))
				return false;
		}
		for (unsigned i = from; i < to; i++) {
			if (!end_turn(r, i, false))
				return false;
		}
	}
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (!give_turn(r, i, step, 0) || !end_turn(r, i, true))
			return false;
		fake_bury(r->world, i);
	}
	return true;
}

static void set_limits(struct run *r, const char *folder)
{
	char name[64], value[256];

	for (int card = 0; card < FAKE_CARDS; card++) {
		r->world->limit[card] = ((uint64_t)32 << 20) + random_below(160 << 20);
		snprintf(name, sizeof name, HM_ENV_MEMORY_LIMIT "_%d", card);
		snprintf(value, sizeof value, "%lu", r->world->limit[card]);
		setenv(name, value, 1);
	}
	snprintf(value, sizeof value, "%s/cache", folder);
	setenv(HM_ENV_SHARED_CACHE, value, 1);
	r->world->pool_step = random_below(2) ? FAKE_PAGE : 16 * FAKE_PAGE;
	r->world->deferred_arrays = random_below(2);
	r->world->nvml = random_below(4) != 0;
}

static bool run_round(struct run *r)
{
	char folder[] = "/tmp/fuzz-calls-XXXXXX", region[64];
	bool good;

	if (mkdtemp(folder) == NULL)
		return false;
	memset(r->world, 0, sizeof *r->world);
	me = (struct me) { .random = r->seed * UINT64_C(0x9e3779b97f4a7c15) | 1 };
	set_limits(r, folder);
	r->born = 0;
	good = true;
	for (unsigned i = 0; i < CHILDREN; i++)
		good = good && start(r, i);
	good = good && take_turns(r);
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (r->children[i].pid > 0) {
			kill(r->children[i].pid, SIGKILL);
			waitpid(r->children[i].pid, NULL, 0);
			close(r->children[i].fd);
			r->children[i].pid = 0;
		}
	}
	snprintf(region, sizeof region, "%s/hami-vgpu.region", folder);
	unlink(region);
	rmdir(folder);
	return good;
}

int main(int argc, char **argv)
{
	struct run r = { .seed = 1, .steps = 100000 };
	uint64_t rounds = 1, steps = 0, first;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--race") == 0) {
			r.race = true;
			continue;
		}
		uint64_t *to = strcmp(argv[i], "--seed") == 0     ? &r.seed
			       : strcmp(argv[i], "--steps") == 0  ? &r.steps
			       : strcmp(argv[i], "--rounds") == 0 ? &rounds
								  : NULL;

		if (to == NULL || !num_u64_str(argv[++i], UINT32_MAX, to)) {
			fprintf(stderr, "usage: fuzz_calls [--seed N] [--steps N] [--rounds N] [--race]\n");
			return 2;
		}
	}
	r.world = mmap(NULL, sizeof *r.world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r.world == MAP_FAILED)
		return 1;
	first = r.seed;
	for (; r.seed < first + rounds; r.seed++, steps += r.steps) {
		if (!run_round(&r)) {
			fprintf(stderr, "fuzz_calls: to see it again: --seed %lu --steps %lu%s\n", r.seed, r.steps,
				r.race ? " --race" : "");
			return 1;
		}
	}
	printf("fuzz_calls: %lu steps, %u processes, %u of them killed: good\n", steps, r.processes, r.killed);
	return 0;
}
