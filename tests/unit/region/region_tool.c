/* region-tool create PATH UUID=BYTES... | show PATH | reap PATH: a region from the command line, for the tests. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/num.h"
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
	fprintf(stderr, "usage: region-tool create PATH UUID=BYTES... | show PATH | reap PATH\n");
	return 2;
}
