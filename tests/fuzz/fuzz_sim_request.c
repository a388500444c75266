/* Messages of two clients, one of them without rights, on a virtual clock: at each one a byte says who sends and
 * whether it leaves then. Whatever they say, process numbers and the cards' sums stay whole. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "core/check.h"
#include "fuzz/fuzz.h"
#include "sim/lib/engine.h"
#include "sim/simd/server.h"

enum { CARDS = 2, CLIENTS = 2, FROM = 1, LEAVES = 2, SHORT = 4 };

_Static_assert(sizeof(struct sim_request) == 88, "the corpus has messages of this size: make them anew");

static void nothing(void *arg)
{
	(void)arg;
}

static void hush(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

static void set_up(struct server *s, struct client *clients)
{
	struct hm_err e;

	log_set_sink(hush, NULL);
	s->node =
		mmap(NULL, sizeof *s->node, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(s->node != MAP_FAILED);
	s->node->card_count = CARDS;
	s->node->clock = SIM_CLOCK_VIRTUAL;
	s->node->loaded = 1;
	for (unsigned i = 0; i < CARDS; i++) {
		s->node->cards[i].info.memory_bytes = 1 << 30;
		s->node->cards[i].epoch = 1;
	}
	list_init(&s->clients);
	list_init(&s->waits);
	CHECK(loop_new(&s->loop, &e) == 0);
	CHECK(loop_timer_new(s->loop, nothing, NULL, &s->grace, &e) == 0);
	CHECK(loop_timer_new(s->loop, nothing, NULL, &s->reload, &e) == 0);
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client) { .server = s, .fd = -1, .pid_fd = -1, .process = NO_PROCESS };
		clients[i].uid = i == 0 ? geteuid() : geteuid() + 1;
		link_append(&s->clients, &clients[i].on);
	}
}

static void tear_down(struct server *s, struct client *clients)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		server_end_process(s, &clients[i]);
	CHECK(list_empty(&s->waits));
	loop_timer_free(s->grace);
	loop_timer_free(s->reload);
	loop_free(s->loop);
	munmap(s->node, sizeof *s->node);
}

static void check(const struct server *s, const struct client *clients)
{
	CHECK(clients[0].process == NO_PROCESS || clients[0].process != clients[1].process);
	for (unsigned i = 0; i < CLIENTS; i++)
		CHECK(clients[i].process == NO_PROCESS || s->node->processes[clients[i].process].pid != 0);
	for (unsigned i = 0; i < CARDS; i++) {
		CHECK(s->node->cards[i].lock == 0);
		for (unsigned f = 0; f < SIM_MAX_FAULTS; f++)
			CHECK(memchr(s->node->cards[i].faults[f].call, 0, SIM_CALL_BYTES) != NULL);
	}
}

static void one(struct client *c, const uint8_t *data, size_t n)
{
	struct sim_request q = { 0 };
	struct sim_reply r;
	enum server_answer answer;

	memcpy(&q, data, n);
	answer = server_request(c, &q, n, &r);
	CHECK(n == sizeof q || answer == SERVER_HANG_UP);
	if (answer == SERVER_REPLY)
		CHECK(r.op == q.op && memchr(r.text, 0, sizeof r.text) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct client clients[CLIENTS];
	struct server s = { .state_fd = -1, .listen_fd = -1 };

	set_up(&s, clients);
	while (n > 0) {
		uint8_t how = *data;
		size_t size = how & SHORT ? how >> 3 : sizeof(struct sim_request);

		size = size < n - 1 ? size : n - 1;
		one(&clients[how & FROM], data + 1, size);
		if (how & LEAVES)
			server_end_process(&s, &clients[how & FROM]);
		check(&s, clients);
		data += 1 + size;
		n -= 1 + size;
	}
	tear_down(&s, clients);
	return 0;
}
