#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/num.h"
#include "sim/simctl/nvml_calls.h"
#include "sim/simctl/simctl.h"

#define MIB ((uint64_t)1 << 20)

int simctl_attach(const struct simctl *c, const struct sim_node **node, struct hm_err *e)
{
	if (sim_attach() != SIM_OK)
		return hm_err_set(e, HM_ENOTFOUND, "no simulated node is up in %s (or its driver is not loaded)",
				  c->dir);
	*node = sim_node();
	return 0;
}

int simctl_ask(const struct simctl *c, struct sim_request q, struct sim_reply *reply, struct hm_err *e)
{
	switch (sim_control(&q, reply)) {
	case SIM_OK: return 0;
	case SIM_NO_NODE: return hm_err_set(e, HM_ENOTFOUND, "no simulated node is up in %s", c->dir);
	case SIM_NO_CARD: return hm_err_set(e, HM_EINVAL, "GPU %u: no such card", q.card);
	default: return hm_err_set(e, HM_EIO, "%s", reply->text[0] != '\0' ? reply->text : "hami-simd refused");
	}
}

int simctl_reload(struct simctl *c, struct hm_err *e)
{
	struct sim_reply reply;

	return simctl_ask(c, (struct sim_request) { .op = SIM_OP_RELOAD, .a = c->down_ms * 1000000 }, &reply, e);
}

/* ---- gpu N hold: a child that stays until it is told to go or the node ends */

static int hold_here(unsigned card, uint64_t bytes)
{
	const struct sim_card_info *info = &sim_node()->cards[card].info;
	enum sim_result r = sim_join(true);

	if (r == SIM_OK)
		r = sim_mem_charge(card, SIM_MEM_CONTEXT, info->context_bytes);
	if (r == SIM_OK)
		r = sim_mem_charge(card, SIM_MEM_DATA, bytes);
	return (int)r;
}

static _Noreturn void be_holder(unsigned card, uint64_t bytes, int report_fd)
{
	int null = open("/dev/null", O_RDWR), result = sim_attach() == SIM_OK ? hold_here(card, bytes) : SIM_NO_NODE;

	setsid();
	signal(SIGHUP, SIG_IGN);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || chdir("/") < 0)
		result = SIM_FAILED;
	if (write(report_fd, &result, sizeof result) != (ssize_t)sizeof result || result != SIM_OK)
		_exit(1);
	close(report_fd);
	while (!sim_wait_end(-1)) {
	}
	_exit(0);
}

static int start_holder(unsigned card, uint64_t bytes, struct hm_err *e)
{
	int fds[2], result = SIM_FAILED;
	ssize_t n = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return hm_err_errno(e, errno, "pipe");
	pid = fork();
	if (pid == 0)
		be_holder(card, bytes, fds[1]);
	close(fds[1]);
	if (pid > 0)
		n = read(fds[0], &result, sizeof result);
	close(fds[0]);
	if (n == (ssize_t)sizeof result && result == SIM_OK) {
		printf("pid %d holds %llu MiB of GPU %u\n", (int)pid, (unsigned long long)(bytes / MIB), card);
		return 0;
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return result == SIM_NO_MEMORY ? hm_err_set(e, HM_ELIMIT, "GPU %u has not that much memory left", card)
				       : hm_err_set(e, HM_EIO, "the holder could not start");
}

static int end_holders(const struct simctl *c, unsigned card, struct hm_err *e)
{
	struct sim_reply reply;
	int r = simctl_ask(c, (struct sim_request) { .op = SIM_OP_RELEASE, .card = card }, &reply, e);

	if (r == 0)
		printf("%llu stray processes ended\n", (unsigned long long)reply.a);
	return r;
}

/* ---- gpu N VERB ARGUMENTS */

static int number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *out, struct hm_err *e)
{
	if (num_u64_str(text, max, out) && *out >= min)
		return 0;
	return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is not a number between %llu and %llu", what, text,
			  (unsigned long long)min, (unsigned long long)max);
}

static int nvml_error(const struct simctl *c, struct sim_request *q, struct hm_err *e)
{
	const char *call = c->words[2];

	if (!nvml_call_is_modelled(call))
		return hm_err_set(e, HM_EINVAL, "\"%s\" is no NVML call that the simulation models", call);
	memcpy(q->text, call, strlen(call) + 1);
	return number("CODE", c->words[3], 0, 999, &q->a, e);
}

static const struct verb {
	const char *name;
	int words; /* behind the verb */
	uint32_t op;
	const char *what; /* the number that follows; NULL: none, or read elsewhere */
	uint64_t min, max, unit;
	int more; /* words that may follow */
} verbs[] = {
	{ "xid", 1, SIM_OP_XID, "NUMBER", 1, 999, 1, 2 },
	{ "ecc", 1, SIM_OP_ECC, "COUNT", 1, 1000000, 1 },
	{ "rows", 2, SIM_OP_ROWS, "PENDING", 0, 1, 1 },
	{ "action", 1, SIM_OP_ACTION, "NUMBER", 0, 99, 1 },
	{ "events", 1, SIM_OP_EVENTS, "0 or 1", 0, 1, 1 },
	{ "lost", 0, SIM_OP_LOST, NULL, 0, 0, 0 },
	{ "recover", 0, SIM_OP_RECOVER, NULL, 0, 0, 0 },
	{ "nvml-error", 2, SIM_OP_NVML_ERROR, NULL, 0, 0, 0 },
	{ "nvml-hang", 1, SIM_OP_NVML_HANG, "SECONDS", 0, 86400, 1000000000 },
	{ "hold", 1, SIM_OP_RELEASE, "MIB", 0, 1 << 24, 1 },
};

/* What stands behind the first number. */
static int read_more(const struct simctl *c, struct sim_request *q, struct hm_err *e)
{
	uint64_t gpu_instance, compute_instance;

	if (q->op == SIM_OP_ROWS)
		return number("FAILED", c->words[3], 0, 1, &q->b, e);
	if (q->op != SIM_OP_XID)
		return 0;
	q->b = UINT64_MAX;
	if (c->word_count == 3)
		return 0;
	if (c->word_count != 5)
		return hm_err_set(e, HM_EINVAL, "gpu N xid NUMBER [GI CI]: both or none; see --help");
	if (number("GI", c->words[3], 0, 255, &gpu_instance, e) < 0 ||
	    number("CI", c->words[4], 0, 255, &compute_instance, e) < 0)
		return -e->code;
	q->b = gpu_instance << 32 | compute_instance;
	return 0;
}

static int run_verb(const struct simctl *c, const struct verb *v, unsigned card, struct hm_err *e)
{
	struct sim_request q = { .op = v->op, .card = card };
	struct sim_reply reply;
	int r = 0;

	if (c->word_count - 2 < v->words || c->word_count - 2 > v->words + v->more)
		return hm_err_set(e, HM_EINVAL, "gpu N %s takes %d more words; see --help", v->name, v->words);
	if (v->what != NULL)
		r = number(v->what, c->words[2], v->min, v->max, &q.a, e);
	else if (v->op == SIM_OP_NVML_ERROR)
		r = nvml_error(c, &q, e);
	if (r == 0)
		r = read_more(c, &q, e);
	if (r < 0)
		return r;
	if (v->op == SIM_OP_RELEASE)
		return q.a == 0 ? end_holders(c, card, e) : start_holder(card, q.a * MIB, e);
	q.a *= v->unit != 0 ? v->unit : 1;
	return simctl_ask(c, q, &reply, e);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < HM_COUNT(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	return NULL;
}

int simctl_gpu(struct simctl *c, struct hm_err *e)
{
	const struct verb *verb = find_verb(c->words[1]);
	bool mig = strcmp(c->words[1], "mig") == 0;
	const struct sim_node *n = NULL;
	uint64_t card = 0;
	int r = number("GPU", c->words[0], 0, SIM_MAX_CARDS - 1, &card, e);

	if (r < 0)
		return r;
	if (verb == NULL && !mig)
		return hm_err_set(e, HM_EINVAL, "gpu N: unknown verb \"%s\"; see --help", c->words[1]);
	r = simctl_attach(c, &n, e);
	if (r < 0)
		return r;
	if (card >= n->card_count)
		return hm_err_set(e, HM_EINVAL, "GPU %u: this node has %u", (unsigned)card, n->card_count);
	return mig ? simctl_mig(c, n, (unsigned)card, e) : run_verb(c, verb, (unsigned)card, e);
}
