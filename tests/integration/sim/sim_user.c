/* sim_user: one command a line on stdin, one answer a line on stdout, "<sim_result> <number>". Commands: charge CARD
 * BYTES, release CARD BYTES, used CARD, own CARD, submit CARD NS, wait CARD TICKET, end CARD TICKET, done CARD TICKET,
 * now, sleep NS, meet 0 PROCESSES, fork (the child goes on reading, the parent waits for it), closefds, lockdie CARD,
 * rawfork. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_client.h"

struct call {
	const char *name;
	enum sim_result (*run)(unsigned card, uint64_t argument, uint64_t *out);
};

static enum sim_result charge(unsigned card, uint64_t bytes, uint64_t *out)
{
	*out = bytes;
	return sim_mem_charge(card, SIM_MEM_DATA, bytes);
}

static enum sim_result release(unsigned card, uint64_t bytes, uint64_t *out)
{
	*out = bytes;
	return sim_mem_release(card, SIM_MEM_DATA, bytes);
}

static enum sim_result used(unsigned card, uint64_t argument, uint64_t *out)
{
	(void)argument;
	*out = sim_mem_used(card);
	return SIM_OK;
}

static enum sim_result own(unsigned card, uint64_t argument, uint64_t *out)
{
	(void)argument;
	*out = sim_mem_own(card);
	return SIM_OK;
}

static enum sim_result submit(unsigned card, uint64_t ns, uint64_t *out)
{
	return sim_work_submit(card, ns, out);
}

static enum sim_result wait_for(unsigned card, uint64_t ticket, uint64_t *out)
{
	enum sim_result r = sim_work_wait(card, ticket);

	*out = sim_now_ns();
	return r;
}

static enum sim_result end(unsigned card, uint64_t ticket, uint64_t *out)
{
	return sim_work_end_ns(card, ticket, out);
}

static enum sim_result is_done(unsigned card, uint64_t ticket, uint64_t *out)
{
	*out = sim_work_done(card, ticket);
	return SIM_OK;
}

static enum sim_result now(unsigned card, uint64_t argument, uint64_t *out)
{
	(void)card;
	(void)argument;
	*out = sim_now_ns();
	return SIM_OK;
}

static enum sim_result sleep_ns(unsigned card, uint64_t ns, uint64_t *out)
{
	enum sim_result r = sim_sleep_until(sim_now_ns() + ns);

	(void)card;
	*out = sim_now_ns();
	return r;
}

static enum sim_result meet(unsigned card, uint64_t processes, uint64_t *out)
{
	enum sim_result r = sim_sleep_together(sim_now_ns() + 1000000, (unsigned)processes);

	(void)card;
	*out = sim_now_ns();
	return r;
}

/* As a program does that makes a daemon of itself. */
static enum sim_result close_fds(unsigned card, uint64_t argument, uint64_t *out)
{
	(void)card;
	(void)argument;
	*out = 0;
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	return SIM_OK;
}

/* Dies in the middle of a change: the lock is held, the card's sum is changed, the own share is not. */
static enum sim_result lock_and_die(unsigned card, uint64_t argument, uint64_t *out)
{
	struct sim_node *n = (struct sim_node *)(uintptr_t)sim_node();
	unsigned process = 0;

	(void)argument;
	*out = 0;
	while (process < SIM_MAX_PROCESSES && atomic_load(&n->processes[process].pid) != (uint32_t)getpid())
		process++;
	if (process == SIM_MAX_PROCESSES || !sim_card_lock(&n->cards[card], process + 1))
		return SIM_FAILED;
	atomic_fetch_add(&n->cards[card].used_bytes, 4096);
	raise(SIGKILL);
	return SIM_FAILED;
}

static enum sim_result fork_here(unsigned card, uint64_t argument, uint64_t *out)
{
	pid_t pid = fork();
	int status = 0;

	(void)card;
	(void)argument;
	*out = (uint64_t)getpid();
	if (pid > 0) {
		waitpid(pid, &status, 0);
		exit(0);
	}
	return SIM_OK;
}

/* A child that no fork handler hears of: it keeps our end of the connection open. */
static enum sim_result raw_fork(unsigned card, uint64_t argument, uint64_t *out)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	(void)card;
	(void)argument;
	if (pid == 0) {
		sleep(30);
		_exit(0);
	}
	*out = (uint64_t)pid;
	return pid > 0 ? SIM_OK : SIM_FAILED;
}

static const struct call calls[] = {
	{ "charge", charge },
	{ "release", release },
	{ "used", used },
	{ "own", own },
	{ "submit", submit },
	{ "wait", wait_for },
	{ "end", end },
	{ "done", is_done },
	{ "now", now },
	{ "sleep", sleep_ns },
	{ "meet", meet },
	{ "fork", fork_here },
	{ "closefds", close_fds },
	{ "lockdie", lock_and_die },
	{ "rawfork", raw_fork },
};

int main(void)
{
	char line[128], name[32];

	setvbuf(stdin, NULL, _IONBF, 0); /* a forked child reads on where its parent stopped */
	printf("%d %d\n", (int)sim_attach(), (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != NULL) {
		unsigned card = 0;
		uint64_t argument = 0, out = 0;
		enum sim_result r = SIM_FAILED;

		if (sscanf(line, "%31s %u %" SCNu64, name, &card, &argument) < 1)
			continue;
		if (strcmp(name, "sleep") == 0) {
			argument = card; /* its one number is a time */
			card = 0;
		}
		for (size_t i = 0; i < HM_COUNT(calls); i++)
			if (strcmp(calls[i].name, name) == 0)
				r = calls[i].run(card, argument, &out);
		printf("%d %" PRIu64 "\n", (int)r, out);
		fflush(stdout);
	}
	return 0;
}
