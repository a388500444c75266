/* share-watch STEP_MS STEPS PROCESSES CARD [REGION|-:PID,PID...]...: the simulation's books on a virtual clock. Meets
 * with PROCESSES others (virtual_time.h), then notes after each step how long the processes of each group have occupied
 * the card, and prints it as one line of JSON: [[ns of each group] of each step]. Where a region is named it gets what
 * the node agent writes to it: the driver's samples, in whole percents, each SAMPLE_MS. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/num.h"
#include "region/alpha.h"
#include "region/region.h"
#include "sim/lib/sim_client.h"
#include "virtual_time.h"

#define MS UINT64_C(1000000)
enum { GROUPS = 4, PIDS = 8, SAMPLE_MS = 200 };

struct group {
	const char *region; /* NULL: gets no samples */
	uint32_t pids[PIDS];
	unsigned pid_count;
	struct alpha alpha;
	uint64_t sampled_ns; /* used, at the last sample */
	uint64_t percent;    /* of the sample at hand */
};

static struct group groups[GROUPS];
static unsigned group_count, card;

static bool parse_group(char *text)
{
	struct group *g = &groups[group_count];
	char *pids = strrchr(text, ':');
	uint64_t pid;

	if (group_count == GROUPS || pids == NULL)
		return false;
	*pids++ = '\0';
	g->region = strcmp(text, "-") == 0 ? NULL : text;
	for (char *p; (p = strsep(&pids, ",")) != NULL;) {
		if (g->pid_count == PIDS || !num_u64_str(p, UINT32_MAX, &pid))
			return false;
		g->pids[g->pid_count++] = (uint32_t)pid;
	}
	group_count++;
	return true;
}

static uint64_t used_ns(const struct group *g)
{
	const struct sim_node *n = sim_node();
	uint64_t sum = 0;

	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		for (unsigned k = 0; k < g->pid_count; k++) {
			if (atomic_load(&n->processes[i].pid) == g->pids[k])
				sum += atomic_load(&n->cards[card].shares[i].done_ns);
		}
	}
	return sum;
}

static void note_use(struct group *g)
{
	uint64_t used = used_ns(g);

	g->percent = ((used - g->sampled_ns) * 100 + SAMPLE_MS * MS / 2) / (SAMPLE_MS * MS);
	g->sampled_ns = used;
}

static bool is_alone(const struct group *g)
{
	uint64_t percent = 0;

	for (unsigned i = 0; i < group_count; i++)
		percent += groups[i].percent;
	return percent == g->percent;
}

static bool sample(struct group *g, uint64_t now)
{
	const char *uuid = sim_node()->cards[card].info.uuid;
	uint64_t spans, from = now - SAMPLE_MS * MS, used = g->percent * SAMPLE_MS * MS / 100;
	struct region_orders stands, want;
	struct hm_err e;
	hm_auto_fd fd = region_share_open(g->region, &e);
	int at = fd < 0 ? fd : region_share_card(fd, uuid, &e);

	if (at < 0 || region_share_read(fd, (unsigned)at, &spans, &stands, &e) < 0) {
		fprintf(stderr, "share-watch: %s\n", e.msg);
		return false;
	}
	alpha_note(&g->alpha, now, spans);
	if (is_alone(g))
		alpha_sample_alone(&g->alpha, from, now, used);
	else
		alpha_sample(&g->alpha, from, now, used);
	want = stands;
	want.alpha = g->alpha.value;
	want.error_ns = (uint64_t)g->alpha.error_ns;
	return region_share_write(fd, (unsigned)at, &stands, &want, &e) == 0;
}

static bool watch(uint64_t step_ms, uint64_t steps)
{
	uint64_t begin = sim_now_ns();

	printf("[");
	for (uint64_t i = 1; i <= steps; i++) {
		if (sim_sleep_until(begin + i * step_ms * MS) != SIM_OK)
			return false;
		printf("%s[", i > 1 ? ", " : "");
		for (unsigned g = 0; g < group_count; g++) {
			printf("%s%" PRIu64, g > 0 ? ", " : "", used_ns(&groups[g]));
			if (i * step_ms % SAMPLE_MS == 0)
				note_use(&groups[g]);
		}
		for (unsigned g = 0; g < group_count; g++) {
			if (groups[g].region != NULL && i * step_ms % SAMPLE_MS == 0 &&
			    !sample(&groups[g], sim_now_ns()))
				return false;
		}
		printf("]");
	}
	printf("]\n");
	return true;
}

int main(int argc, char **argv)
{
	uint64_t step_ms, steps, processes, number;
	bool good = argc > 5 && num_u64_str(argv[1], 1000, &step_ms) && num_u64_str(argv[2], 100000, &steps) &&
		    num_u64_str(argv[3], 100, &processes) && num_u64_str(argv[4], SIM_MAX_CARDS, &number);

	for (int i = 5; good && i < argc; i++)
		good = parse_group(argv[i]);
	if (!good || step_ms == 0) {
		fprintf(stderr, "usage: share-watch STEP_MS STEPS PROCESSES CARD REGION|-:PID,PID... ...\n");
		return 2;
	}
	card = (unsigned)number;
	if (sim_attach() != SIM_OK || card >= sim_node()->card_count) {
		fprintf(stderr, "share-watch: no simulated node\n");
		return 1;
	}
	(void)sim_sleep_together(sim_now_ns() + VIRTUAL_TIME_MEET_NS, (unsigned)processes + 1);
	return watch(step_ms, steps) ? 0 : 1;
}
