/* Several processes of one container, and the ends that a process may come to. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "books.h"
#include "fill.h"
#include "paths.h"
#include "views.h"

enum { MANY = 4 };

/* Takes pieces until one is refused, or the whole limit is there. */
static size_t take_all(void)
{
	size_t got = 0, piece = fill_piece();
	CUdeviceptr p;

	for (; piece >= 2 * MIB; piece = piece / 4 * 2) {
		CUresult rc = CUDA_SUCCESS;

		while (got < check_limit() && (rc = cuMemAlloc_v2(&p, piece)) == CUDA_SUCCESS)
			got += piece;
		HOLDS(rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY, "the refusal was %d", rc);
		piece = piece / (2 * MIB) * (2 * MIB);
	}
	return got;
}

static void role_hold_all(int sock)
{
	CUcontext ctx;

	OK(cuInit(0));
	CUresult rc = cuDevicePrimaryCtxRetain(&ctx, 0);

	HOLDS(rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY, "a context beside others: %d", rc);
	if (rc == CUDA_SUCCESS) {
		OK(cuCtxSetCurrent(ctx));
		(void)take_all();
	}
	child_nod(sock);
	child_wait(sock);
}

/* A context, then a piece, each told. */
static void role_hold(int sock)
{
	CUdeviceptr p;

	check_use(0);
	child_nod(sock);
	child_await(sock);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	child_nod(sock);
	child_wait(sock);
}

/* Both at once. */
static void role_visit(int sock)
{
	CUdeviceptr p;

	check_use(0);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	child_nod(sock);
	child_wait(sock);
}

static void next(struct child *c)
{
	child_nod(c->sock);
	child_await(c->sock);
}

/* Ended by SIGKILL: the charge comes back with the driver's memory. */
static void run_death(void)
{
	check_use(0);
	size_t start = views_match_books(0);
	struct child c = child_start_ready("hold");

	next(&c);
	HOLDS(views_match_books(0) >= start + fill_piece(), "the other process is charged %zu", views_used(0) - start);
	fill_expect_room(0);
	child_kill(&c);
	(void)books_settle(0, start);
	HOLDS(check_same(views_match_books(0), start), "after its death: %zu", views_used(0) - start);
	fill_expect_room(0);
}

/* Several at once, each taking what it can get: together never more than the limit, and nothing is lost. */
static void run_share(void)
{
	struct child c[MANY];

	check_use(0);
	size_t start = views_match_books(0);

	for (int i = 0; i < MANY; i++)
		c[i] = child_start("hold-all");
	for (int i = 0; i < MANY; i++)
		child_await(c[i].sock);
	size_t held = books_held(0);

	HOLDS(held <= check_limit() + check_slack(), "together they have %zu of %zu", held, check_limit());
	views_match_books(0);
	for (int i = 0; i < MANY; i++)
		child_end(&c[i]);
	(void)books_settle(0, start);
	HOLDS(check_same(views_match_books(0), start), "after their end: %zu", views_used(0) - start);
	fill_expect_room(0);
}

/* The same by threads of one process. */
static void *take_in_thread(void *ctx)
{
	OK(cuCtxSetCurrent(ctx));
	return (void *)take_all();
}

static void run_threads(void)
{
	pthread_t threads[MANY];
	CUcontext ctx = check_use(0);
	size_t start = views_match_books(0), got = 0;

	for (int i = 0; i < MANY; i++)
		if (pthread_create(&threads[i], NULL, take_in_thread, ctx) != 0)
			abort();
	for (int i = 0; i < MANY; i++) {
		void *bytes;

		pthread_join(threads[i], &bytes);
		got += (size_t)bytes;
	}
	HOLDS(got <= check_limit() - start, "threads were granted %zu beside %zu of %zu", got, start, check_limit());
	HOLDS(books_held(0) <= check_limit() + check_slack(), "the card has %zu taken", books_held(0));
	HOLDS(check_same(views_match_books(0), start + got), "the views show %zu for %zu", views_used(0) - start, got);
	fill_expect_room(0);
}

/* exec ends what the process had: the new image begins with nothing. */
static void role_exec(int sock)
{
	char number[12];
	CUdeviceptr p;

	check_use(0);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	child_nod(sock);
	child_await(sock);
	snprintf(number, sizeof number, "%d", sock);
	execl("/proc/self/exe", "cuda-path", "--role", "hold", number, (char *)NULL);
	_exit(127);
}

static void run_exec(void)
{
	check_use(0);
	size_t start = views_match_books(0);
	struct child c = child_start_ready("exec");
	size_t before = views_match_books(0);

	HOLDS(before >= start + fill_piece(), "the other process is charged %zu", before - start);
	next(&c); /* the new image has its context */
	(void)books_settle(0, before - fill_piece());
	HOLDS(check_same(views_match_books(0), before - fill_piece()), "after exec: %zu", views_used(0) - start);
	next(&c);
	HOLDS(check_same(views_match_books(0), before), "allocated anew: %zu", views_used(0) - start);
	fill_expect_room(0);
	child_end(&c);
	(void)books_settle(0, start);
	HOLDS(check_same(views_match_books(0), start), "after its end: %zu", views_used(0) - start);
}

/* A forked child has no CUDA, and its end takes nothing away from its parent. */
static void run_fork(void)
{
	CUdeviceptr p;

	check_use(0);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	size_t before = views_match_books(0);

	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		CUdeviceptr q;

		_exit(cuMemAlloc_v2(&q, fill_piece()) == CUDA_SUCCESS ? 1 : 0);
	}
	int status = 0;

	waitpid(pid, &status, 0);
	HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the forked child ended with %#x", (unsigned)status);
	HOLDS(check_same(views_match_books(0), before), "after the child's end: %zu, before %zu", views_used(0),
	      before);
	fill_expect_room(0);
	OK(cuMemFree_v2(p));
	views_match_books(0);
}

static void give_up(int signal)
{
	static const char why[] = "not available: a process cannot checkpoint itself here\n";

	(void)signal;
	(void)!write(STDOUT_FILENO, why, sizeof why - 1);
	_exit(CHECK_NOT_AVAILABLE);
}

/* The process leaves the card and comes back: what another one took meanwhile stays its own. */
static void run_checkpoint(void)
{
	CUcheckpointLockArgs lock = { .timeoutMs = 5000 };
	CUcheckpointCheckpointArgs out = { 0 };
	CUcheckpointRestoreArgs in = { 0 };
	CUcheckpointUnlockArgs unlock = { 0 };
	CUdeviceptr p;
	int self = (int)getpid();

	NEED(cuCheckpointProcessCheckpoint);
	check_use(0);
	OK(cuMemAlloc_v2(&p, check_limit() / 2));
	size_t before = views_match_books(0);

	(void)signal(SIGALRM, give_up); /* a driver may wait for the process that asks */
	(void)alarm(20);
	CUresult rc = cuCheckpointProcessLock(self, &lock);

	if (rc != CUDA_SUCCESS)
		check_not_available("a process cannot lock itself for a checkpoint here: %d", rc);
	SUPPORTED(cuCheckpointProcessCheckpoint(self, &out));
	HOLDS(books_settle(0, before / 2) <= before / 2, "a checkpoint leaves %zu on the card", books_held(0));
	struct child c = child_start_ready("hold-all");

	rc = cuCheckpointProcessRestore(self, &in);
	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "a restore beside a full limit: %d", rc);
	HOLDS(books_held(0) <= check_limit() + check_slack(), "the card has %zu taken", books_held(0));
	child_end(&c);
	(void)books_settle(0, rc != CUDA_SUCCESS ? 0 : before);
	if (rc != CUDA_SUCCESS)
		OK(cuCheckpointProcessRestore(self, &in));
	OK(cuCheckpointProcessUnlock(self, &unlock));
	HOLDS(check_same(views_match_books(0), before), "restored: %zu, before %zu", views_used(0), before);
	fill_expect_room(0);
	OK(cuMemFree_v2(p));
	views_match_books(0);
}

const struct path paths_process[] = {
	{ "process-death", run_death, BARE_BREAKS },
	{ "processes-share", run_share, BARE_BREAKS },
	{ "threads-share", run_threads, BARE_BREAKS },
	{ "process-exec", run_exec, BARE_BREAKS },
	{ "process-fork", run_fork, BARE_BREAKS },
	{ "checkpoint", run_checkpoint, BARE_BREAKS },
	{ 0 },
};
const struct role roles_process[] = {
	{ "hold", role_hold }, { "hold-all", role_hold_all }, { "visit", role_visit }, { "exec", role_exec }, { 0 },
};
