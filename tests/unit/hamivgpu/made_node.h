/* A node made by hand: the fake NVML, a state folder with claims and regions, a /proc. For the tests of hamivgpu and
 * smi. */
#ifndef HM_TESTS_HAMIVGPU_MADE_NODE_H
#define HM_TESTS_HAMIVGPU_MADE_NODE_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "hamivgpu/hamivgpu.h"
#include "io/file.h"
#include "region/ledger.h"
#include "region/map.h"
#include "region/region.h"
#include "unit/gpu/fake_setup.h"

#define MADE_GPU(n) "GPU-00000000-0000-0000-0000-00000000000" #n

struct made_node {
	char root[64], state[80], proc[80];
	struct fake *fake;
};

static inline void made_file(const struct made_node *n, const char *name, const char *text)
{
	char path[512], folder[512];
	struct hm_err e;

	snprintf(path, sizeof path, "%s/%s", n->root, name);
	snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = '\0';
	if (file_mkdirs(folder, 0755, &e) < 0 || file_replace(path, text, strlen(text), 0644, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
}

static inline void made_begin(struct made_node *n, unsigned cards)
{
	struct hm_err e;

	snprintf(n->root, sizeof n->root, "/tmp/hm-test-node-XXXXXX");
	if (mkdtemp(n->root) == NULL)
		abort();
	snprintf(n->state, sizeof n->state, "%s/state", n->root);
	snprintf(n->proc, sizeof n->proc, "%s/proc", n->root);
	if (file_mkdirs(n->proc, 0755, &e) < 0)
		abort();
	n->fake = fake_load(FAKE_NVML);
	fake_node(n->fake, cards);
}

static inline void made_end(struct made_node *n)
{
	struct hm_err e;

	if (file_remove_tree(n->root, &e) < 0)
		fprintf(stderr, "%s\n", e.msg);
}

static inline void made_node_file(const struct made_node *n)
{
	made_file(n, "state/node",
		  "hami-vgpu-node 1\nslots_per_card=4\nslot_memory_mb=0\nslicing=static\nbinding=late\npid=77\n"
		  "card=" MADE_GPU(0) " slots=4 slot_memory=11945377792 slot_cores=25\n"
				      "card=" MADE_GPU(1) " slots=4 slot_memory=11945377792 slot_cores=25\nend\n");
}

/* A claim of `slots` slots from slot number 1 on of card 0, 1 GiB each. Pod "": only its UID is known; "?": nothing. */
static inline void made_claim(const struct made_node *n, unsigned number, const char *state, const char *pod,
			      unsigned slots)
{
	bool nobody = strcmp(pod, "?") == 0, named = !nobody && *pod != '\0';
	char name[64], text[2048], uid[32];
	int at;

	snprintf(uid, sizeof uid, "uid-%u", number);
	at = snprintf(text, sizeof text,
		      "hami-vgpu-claim 1\n"
		      "number=%u\nstate=%s\npod_uid=%s\npod_namespace=%s\npod_name=%s\n"
		      "container=%s\nresource=hami.com/vgpu\ncdi=hami.io/vgpu=v.%u\ncreated_ms=1764447654123\n",
		      number, state, nobody ? "" : uid, named ? "team-a" : "", named ? pod : "", nobody ? "" : "main",
		      number);

	for (unsigned i = 0; i < slots; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "device=" MADE_GPU(0) "::%u\n", 1 + i);
	snprintf(text + at, sizeof text - (size_t)at, "entry=0\ncard=" MADE_GPU(0) " memory=%u cores=%u slot=1\nend\n",
		 slots << 30, 25 * slots);
	snprintf(name, sizeof name, "state/claims/%u", number);
	made_file(n, name, text);
}

/* A region for card 0 with limit 2 GiB, in which a process of the container uses `used` bytes. */
static inline void made_region_of(const struct made_node *n, unsigned number, struct process_id id, uint64_t used)
{
	struct limits limits = { .count = 1 };
	struct region_map map;
	struct ledger ledger = { 0 };
	char path[256];
	struct hm_err e;

	snprintf(limits.cards[0].uuid, sizeof limits.cards[0].uuid, MADE_GPU(0));
	limits.cards[0].memory_bytes = 2ull << 30;
	limits.cards[0].cores = 50;
	snprintf(path, sizeof path, "%s/alloc/%u/usage", n->state, number);
	if (file_mkdirs(path, 0755, &e) < 0)
		abort();
	snprintf(path, sizeof path, "%s/alloc/%u/usage/region", n->state, number);
	if (region_create(path, &limits, &e) < 0 || region_map_file(path, &map, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	if (!slot_claim(map.r, &id, &ledger) || ledger_reserve(&ledger, 0, 2ull << 30, used) != LEDGER_OK)
		abort();
	region_unmap(&map);
}

static inline void made_region(const struct made_node *n, unsigned number, uint32_t pid, uint64_t used)
{
	made_region_of(n, number, (struct process_id) { pid, 5000 + pid, 4026530000u }, used);
}

/* A process of the host in a /proc of ours. */
static inline void made_process(const struct made_node *n, unsigned pid, unsigned inner_pid, const char *name)
{
	char file[64], text[512];

	snprintf(file, sizeof file, "proc/%u/comm", pid);
	snprintf(text, sizeof text, "%s\n", name);
	made_file(n, file, text);
	snprintf(file, sizeof file, "proc/%u/status", pid);
	snprintf(text, sizeof text, "Name:\t%s\nNSpid:\t%u\t%u\nThreads:\t1\n", name, pid, inner_pid);
	made_file(n, file, text);
	snprintf(file, sizeof file, "proc/%u/stat", pid);
	snprintf(text, sizeof text, "%u (%s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 1000 10\n", pid, name,
		 5000 + inner_pid);
	made_file(n, file, text);
	snprintf(text, sizeof text, "%s/proc/%u/ns", n->root, pid);
	if (mkdir(text, 0755) < 0)
		abort();
	snprintf(text, sizeof text, "%s/proc/%u/ns/pid", n->root, pid);
	if (symlink("pid:[4026530000]", text) < 0)
		abort();
}

static inline struct hamivgpu *made_open(const struct made_node *n, const char *library)
{
	const struct hamivgpu_options options = { sizeof options, n->state, library, n->proc };
	struct hamivgpu *h = NULL;
	struct hamivgpu_error e;

	if (hamivgpu_open(&options, &h, &e) < 0) {
		fprintf(stderr, "%s\n", e.message);
		abort();
	}
	return h;
}

#endif
