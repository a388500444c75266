#include <inttypes.h>
#include <stdio.h>

#include "core/fmt.h"
#include "io/json.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_mig.h"
#include "sim/simctl/simctl.h"

#define MIB(bytes) ((bytes) >> 20)

static bool on_card(const struct sim_node *n, const struct sim_card *c, unsigned process)
{
	return atomic_load(&n->processes[process].pid) != 0 && atomic_load(&c->shares[process].epoch) != 0;
}

static uint64_t bytes_of(const struct sim_share *s)
{
	return atomic_load(&s->data_bytes) + atomic_load(&s->context_bytes);
}

static uint64_t queued_ns(const struct sim_share *s)
{
	uint64_t done = atomic_load(&s->done_ns), submitted = atomic_load(&s->submitted_ns);

	return submitted > done ? submitted - done : 0;
}

static uint64_t hang_ms(const struct sim_card *c)
{
	uint64_t until = atomic_load(&c->hang_until_ns), now = sim_monotonic_ns();

	return until > now ? (until - now) / 1000000 : 0;
}

/* ---- JSON. What could not be added is noted, and then there is no text: a key that lacks would be taken for a fact.
 */

static bool short_of_memory;

static struct cJSON *noted(struct cJSON *added)
{
	short_of_memory = short_of_memory || added == NULL;
	return added;
}

static void put(struct cJSON *o, const char *key, uint64_t v)
{
	noted(cJSON_AddNumberToObject(o, key, (double)v));
}

static void put_text(struct cJSON *o, const char *key, const char *text)
{
	noted(cJSON_AddStringToObject(o, key, text));
}

static struct cJSON *put_list(struct cJSON *o, const char *key)
{
	return noted(cJSON_AddArrayToObject(o, key));
}

static struct cJSON *append(struct cJSON *list)
{
	struct cJSON *o = noted(cJSON_CreateObject());

	if (cJSON_AddItemToArray(list, o))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void put_processes(struct cJSON *list, const struct sim_node *n, const struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		const struct sim_share *s = &c->shares[i];
		struct cJSON *o;

		if (!on_card(n, c, i))
			continue;
		o = append(list);
		put(o, "pid", atomic_load(&n->processes[i].pid));
		put(o, "bytes", bytes_of(s));
		put(o, "context_bytes", atomic_load(&s->context_bytes));
		put(o, "busy_ns", atomic_load(&s->done_ns) + atomic_load(&s->spun_ns));
		put(o, "queued_ns", queued_ns(s));
		noted(cJSON_AddBoolToObject(o, "holder", atomic_load(&n->processes[i].holder) != 0));
	}
}

static void put_faults(struct cJSON *list, const struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MAX_FAULTS; i++) {
		int code = atomic_load(&c->faults[i].code);
		struct cJSON *o;

		if (code == 0)
			continue;
		o = append(list);
		put_text(o, "call", c->faults[i].call);
		put(o, "code", (uint64_t)code);
	}
}

static void put_mig(struct cJSON *list, const struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++) {
		const struct sim_mig_ci *ci = &c->mig_cis[i];
		char profile[48];
		struct cJSON *o;

		if (atomic_load(&ci->live) == 0)
			continue;
		o = append(list);
		sim_mig_name(c, ci, profile, sizeof profile);
		put_text(o, "uuid", ci->uuid);
		put_text(o, "profile", profile);
		put(o, "start", c->mig_gis[ci->gi].start);
		put(o, "size", c->info.mig_profiles[c->mig_gis[ci->gi].profile].size);
		put(o, "gpu_instance", c->mig_gis[ci->gi].id);
		put(o, "compute_instance", ci->id);
		put(o, "total_bytes", sim_mig_bytes(c, ci->gi));
		put(o, "used_bytes", sim_mig_used(c, ci->gi));
	}
}

static unsigned gpu_instances(const struct sim_card *c)
{
	unsigned count = 0;

	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		count += atomic_load(&c->mig_gis[i].live) != 0;
	return count;
}

static void put_card(struct cJSON *o, const struct sim_node *n, unsigned i)
{
	const struct sim_card *c = &n->cards[i];
	char bus[32];

	hm_fmt(bus, sizeof bus, "%08x:%02x:%02x.0", c->info.pci_domain, c->info.pci_bus, c->info.pci_device);
	put(o, "index", i);
	put_text(o, "uuid", c->info.uuid);
	put_text(o, "name", c->info.name);
	put(o, "minor", c->info.minor);
	put_text(o, "pci_bus_id", bus);
	noted(cJSON_AddNumberToObject(o, "numa_node", c->info.numa_node));
	put(o, "sms", c->info.sms);
	put(o, "total_bytes", c->info.memory_bytes);
	put(o, "reserved_bytes", c->info.reserved_bytes);
	put(o, "used_bytes", atomic_load(&c->used_bytes));
	put(o, "peak_bytes", atomic_load(&c->peak_bytes));
	put(o, "busy_ns", atomic_load(&c->busy_ns));
	noted(cJSON_AddBoolToObject(o, "lost", atomic_load(&c->lost) != 0));
	put(o, "hang_ms", hang_ms(c));
	noted(cJSON_AddBoolToObject(o, "mig", atomic_load(&c->mig_mode) != 0));
	noted(cJSON_AddBoolToObject(o, "mig_pending", atomic_load(&c->mig_pending) != 0));
	put(o, "gpu_instances", gpu_instances(c));
	put_mig(put_list(o, "mig_devices"), c);
	put_faults(put_list(o, "faults"), c);
	put_processes(put_list(o, "processes"), n, c);
}

static void put_events(struct cJSON *list, const struct sim_node *n)
{
	uint64_t head = atomic_load(&n->event_head);

	for (uint64_t i = head > SIM_EVENTS ? head - SIM_EVENTS : 0; i < head; i++) {
		const struct sim_event *event = &n->events[i % SIM_EVENTS];
		struct cJSON *o;

		if (atomic_load(&event->sequence) != i + 1)
			continue;
		o = append(list);
		put(o, "gpu", event->card);
		put(o, "xid", event->xid);
		put(o, "at_ns", event->at_ns);
	}
}

char *simctl_status_json(const char *dir, const struct sim_node *n)
{
	hm_auto(cJSON) *root = NULL;
	struct cJSON *cards;

	short_of_memory = false;
	root = noted(cJSON_CreateObject());
	put_text(root, "node", n->name);
	put_text(root, "dir", dir);
	put(root, "daemon_pid", n->daemon_pid);
	put_text(root, "clock", n->clock == SIM_CLOCK_VIRTUAL ? "virtual" : "wall");
	put(root, "now_ns", sim_clock_now(n));
	put_text(root, "driver_version", n->driver_version);
	put(root, "cuda_version", n->cuda_version);
	put(root, "generation", atomic_load(&n->generation));
	cards = put_list(root, "cards");
	for (unsigned i = 0; i < n->card_count; i++)
		put_card(append(cards), n, i);
	put_events(put_list(root, "events"), n);
	return short_of_memory ? NULL : cJSON_Print(root);
}

static int print_json(const char *dir, const struct sim_node *n, struct hm_err *e)
{
	hm_auto_heap char *text = simctl_status_json(dir, n);

	if (text == NULL)
		return hm_err_set(e, HM_ENOMEM, "status");
	return puts(text) >= 0 ? 0 : hm_err_set(e, HM_EIO, "cannot write");
}

/* ---- Text */

static void print_mig(const struct sim_card *c)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++) {
		char profile[48];

		if (atomic_load(&c->mig_cis[i].live) == 0)
			continue;
		sim_mig_name(c, &c->mig_cis[i], profile, sizeof profile);
		printf("  mig      %s at %u  %s\n", profile, c->mig_gis[c->mig_cis[i].gi].start, c->mig_cis[i].uuid);
	}
}

static void print_card(const struct sim_node *n, unsigned i)
{
	const struct sim_card *c = &n->cards[i];

	printf("GPU %u  %s  %s  %" PRIu64 " / %" PRIu64 " MiB, peak %" PRIu64 " MiB, busy %" PRIu64 " ms%s%s\n", i,
	       c->info.name, c->info.uuid, MIB(atomic_load(&c->used_bytes)), MIB(c->info.memory_bytes),
	       MIB(atomic_load(&c->peak_bytes)), atomic_load(&c->busy_ns) / 1000000,
	       atomic_load(&c->lost) != 0 ? ", LOST" : "", hang_ms(c) > 0 ? ", NVML hangs" : "");
	print_mig(c);
	for (unsigned f = 0; f < SIM_MAX_FAULTS; f++)
		if (atomic_load(&c->faults[f].code) != 0)
			printf("  fault    %s answers %d\n", c->faults[f].call, atomic_load(&c->faults[f].code));
	for (unsigned p = 0; p < SIM_MAX_PROCESSES; p++)
		if (on_card(n, c, p))
			printf("  process  %u: %" PRIu64 " MiB, busy %" PRIu64 " ms%s\n",
			       atomic_load(&n->processes[p].pid), MIB(bytes_of(&c->shares[p])),
			       atomic_load(&c->shares[p].done_ns) / 1000000,
			       atomic_load(&n->processes[p].holder) != 0 ? " (stray, by hold)" : "");
}

int simctl_status(struct simctl *c, struct hm_err *e)
{
	const struct sim_node *n = NULL;
	struct sim_reply reply;
	int r = simctl_attach(c, &n, e);

	if (r == 0)
		r = simctl_ask(c, (struct sim_request) { .op = SIM_OP_SYNC }, &reply, e);
	if (r < 0)
		return r;
	if (c->json)
		return print_json(c->dir, n, e);
	printf("node %s, driver %s, CUDA %u.%u, %s clock, %u cards\n", n->name, n->driver_version,
	       n->cuda_version / 1000, n->cuda_version % 1000 / 10, n->clock == SIM_CLOCK_VIRTUAL ? "virtual" : "wall",
	       n->card_count);
	for (unsigned i = 0; i < n->card_count; i++)
		print_card(n, i);
	return 0;
}
