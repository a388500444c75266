/* region-tool create PATH UUID=BYTES... | show PATH | reap PATH | correct PATH UUID: a region from the command line,
 * for the tests. correct reads lines "NOW_NS USED_NS" (the clock, and the GPU time that the container has used so far).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/num.h"
#include "region/alpha.h"
#include "region/map.h"
#include "region/region.h"

static int fail(const struct hm_err *e)
{
	fprintf(stderr, "region-tool: %s\n", e->msg);
	return 1;
}

static int create(const char *path, char **cards, int count)
{
	struct limits l = { .priority = 1 };
	struct hm_err e = { 0 };

	for (int i = 0; i < count && l.count < HM_MAX_CARDS; i++) {
		struct limit_card *card = &l.cards[l.count++];
		char *equals = strchr(cards[i], '=');

		if (equals == NULL || !num_u64_str(equals + 1, REGION_MAX_BYTES, &card->memory_bytes))
			return 2;
		*equals = '\0';
		snprintf(card->uuid, sizeof card->uuid, "%s", cards[i]);
		card->cores = 50;
	}
	return region_create(path, &l, &e) < 0 ? fail(&e) : 0;
}

static void show_processes(const struct region_snapshot *s)
{
	for (size_t i = 0; i < s->process_count; i++) {
		printf("%s{\"pid\": %u, \"used\": [", i > 0 ? ", " : "", s->processes[i].pid);
		for (size_t card = 0; card < s->card_count; card++)
			printf("%s%" PRIu64, card > 0 ? ", " : "", s->processes[i].used_bytes[card]);
		printf("]}");
	}
}

static int show(const char *path)
{
	static struct region_process list[REGION_MAX_PROCESSES];
	struct region_snapshot s = { .processes = list };
	struct hm_err e = { 0 };
	struct region_map m;

	if (region_snapshot(path, &s, &e) < 0 || region_map_file(path, &m, &e) < 0)
		return fail(&e);
	printf("{\"cards\": [");
	for (size_t i = 0; i < s.card_count; i++)
		printf("%s{\"uuid\": \"%s\", \"limit\": %" PRIu64 ", \"used\": %" PRIu64 ", \"peak\": %" PRIu64
		       ", \"refused\": %" PRIu64 ", \"spilled\": %" PRIu64 ", \"spilled_bytes\": %" PRIu64 "}",
		       i > 0 ? ", " : "", s.cards[i].uuid, s.cards[i].limit_bytes, s.cards[i].used_bytes,
		       s.cards[i].peak_bytes, s.cards[i].refused, s.cards[i].spilled, s.cards[i].spilled_bytes);
	printf("], \"processes\": [");
	show_processes(&s);
	printf("], \"attached\": %" PRIu64 ", \"reaped\": %" PRIu64 ", \"unknown_entry_points\": %" PRIu64
	       ", \"troubles\": %" PRIu64 ", \"last_trouble\": \"",
	       m.r->stats.attached, m.r->stats.reaped, m.r->stats.unknown_entry_points, s.troubles);
	for (const char *c = s.last_trouble; *c != '\0'; c++)
		printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	printf("\"}\n");
	region_unmap(&m);
	return 0;
}

static int correct(const char *path, const char *uuid)
{
	uint64_t now, used, last = 0, last_used = 0, spans;
	struct region_orders stands, want;
	struct alpha a = { 0 };
	struct hm_err e = { 0 };
	hm_auto_fd fd = region_share_open(path, &e);
	int card = fd < 0 ? fd : region_share_card(fd, uuid, &e);

	if (card < 0)
		return fail(&e);
	while (scanf("%" SCNu64 " %" SCNu64, &now, &used) == 2) {
		if (region_share_read(fd, (unsigned)card, &spans, &stands, &e) < 0)
			return fail(&e);
		alpha_note(&a, now, spans);
		if (last != 0)
			alpha_sample(&a, last, now, used - last_used);
		want = stands;
		want.alpha = a.value;
		want.error_ns = (uint64_t)a.error_ns;
		if (region_share_write(fd, (unsigned)card, &stands, &want, &e) < 0)
			return fail(&e);
		last = now;
		last_used = used;
	}
	return 0;
}

static bool is_of_ours(const struct region_process *p, void *arg)
{
	(void)arg;
	return p->pid_namespace == process_id_self().pid_namespace;
}

/* As the agent does, which sees all namespaces; here every process of another one than ours is dead. */
static int reap(const char *path)
{
	struct hm_err e = { 0 };

	return region_reap(path, is_of_ours, NULL, &e) < 0 ? fail(&e) : 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "create") == 0)
		return create(argv[2], argv + 3, argc - 3);
	if (argc == 3 && strcmp(argv[1], "show") == 0)
		return show(argv[2]);
	if (argc == 3 && strcmp(argv[1], "reap") == 0)
		return reap(argv[2]);
	if (argc == 4 && strcmp(argv[1], "correct") == 0)
		return correct(argv[2], argv[3]);
	fprintf(stderr, "usage: region-tool create PATH UUID=BYTES... | show PATH | reap PATH | correct PATH UUID\n");
	return 2;
}
