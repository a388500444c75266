#include "model_checker/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const w_spaces[W_SPACES] = { "blue", "green" };
const char *const w_quotas[W_QUOTAS] = { "first", "second" };
const struct w_profile w_profiles[2] = { { "1g.200", 200, 14, 1, 7 }, { "2g.400", 400, 28, 2, 3 } };

uint64_t w_roll(struct world *w, uint64_t below)
{
	w->dice ^= w->dice << 13;
	w->dice ^= w->dice >> 7;
	w->dice ^= w->dice << 17;
	return (w->dice >> 11) % below;
}

bool w_chance(struct world *w, unsigned percent)
{
	return w_roll(w, 100) < percent;
}

/* ---- making things */

void w_make_card(struct world *w, struct w_card *c)
{
	static const int memory[] = { 1000, 1000, 2000 }, count[] = { 1, 2, 4, 4 }, cores[] = { 100, 100, 100, 150 };

	c->present = w_chance(w, 85);
	c->healthy = w_chance(w, 92);
	c->cut = w_chance(w, 20);
	c->memory = c->cut ? 1600 : W_PICK(w, memory);
	c->count = c->cut ? 7 : W_PICK(w, count);
	c->cores = c->cut ? 100 : W_PICK(w, cores);
	c->numa = (int)w_roll(w, 2);
}

void w_make_host(struct world *w, struct w_node *n)
{
	static const int cpu[] = { -1, 2000, 4000, 9000 }, mib[] = { -1, 500, 3000 };

	n->cpu_milli = W_PICK(w, cpu);
	n->host_mib = W_PICK(w, mib);
}

static struct w_ask make_ask(struct world *w, enum w_kind kind)
{
	static const int counts[] = { 0, 1, 1, 1, 1, 2 }, memory[] = { 100, 300, 500, 900 },
			 percent[] = { 10, 50, 100 }, cores[] = { 0, 0, 10, 50, 100 }, cpu[] = { 0, 250, 1000, 1500 },
			 mib[] = { 0, 100, 300 };
	struct w_ask a = {
		.kind = kind, .count = W_PICK(w, counts), .cpu_milli = W_PICK(w, cpu), .host_mib = W_PICK(w, mib)
	};

	if (a.count == 0)
		return a;
	if (w_chance(w, 70))
		a.memory = W_PICK(w, memory);
	else
		a.percent = W_PICK(w, percent);
	a.cores = W_PICK(w, cores);
	return a;
}

void w_make_pod(struct world *w, struct w_pod *p)
{
	static const char *const cards[] = { NULL, NULL, NULL, "binpack", "spread", "mutex", "topology-aware", "fgd" };
	static const char *const nodes[] = { NULL, "binpack", "spread", "fgd" };
	size_t place = (size_t)(p - w->pods), init = w_chance(w, 50) ? w_roll(w, 3) : 0, apps = 1 + w_roll(w, 2);

	memset(p, 0, sizeof *p);
	snprintf(p->uid, sizeof p->uid, "%08x-1111-4222-8333-444455556666", w->pods_made++);
	snprintf(p->name, sizeof p->name, "pod-%zu", place); /* the same name again, as a StatefulSet's */
	p->seen_on = -1;
	p->space = (int)w_roll(w, W_SPACES);
	p->priority = (int)w_roll(w, 4);
	p->card_policy = W_PICK(w, cards);
	p->node_policy = W_PICK(w, nodes);
	p->numa_bind = w_chance(w, 10) ? "true" : NULL;
	for (size_t i = 0; i < init + apps; i++)
		p->asks[p->count++] = make_ask(w, i >= init ? W_APP : w_chance(w, 40) ? W_SIDECAR : W_INIT);
	if (p->asks[p->count - 1].count == 0)
		p->asks[p->count - 1] = (struct w_ask) { W_APP, 1, 300, 0, 10, 250, 0 };
	w_say(w, "%s is a new pod %.8s in %s", p->name, p->uid, w_spaces[p->space]);
	for (int i = 0; i < p->count; i++)
		w_say(w, "    %s: %d cards of %d MiB %d %%, %d cores",
		      (const char *[]) { "init", "sidecar", "app" }[p->asks[i].kind], p->asks[i].count,
		      p->asks[i].memory, p->asks[i].percent, p->asks[i].cores);
}

void w_make_text(struct world *w, const struct w_pod *p, struct w_record *out)
{
	const struct w_node *n;

	*out = (struct w_record) { .node = (int)w_roll(w, W_NODES),
				   .garbage = w_chance(w, 25),
				   .bare = w_chance(w, 25) };
	n = &w->nodes[out->node];
	for (int i = 0; i < p->count; i++)
		for (int k = 0; k < p->asks[i].count; k++) {
			const struct w_card *c = &n->cards[w_roll(w, W_CARDS)];
			struct w_share *s = &out->shares[out->count++];
			*s = (struct w_share) { .container = i, .memory = 100 * (int)(1 + w_roll(w, 5)), .cores = 10 };
			memcpy(s->uuid, c->uuid, sizeof s->uuid);
			if (w_chance(w, c->cut ? 80 : 10)) {
				const struct w_profile *f = &w_profiles[w_roll(w, 2)];
				s->size = f->size;
				s->start = f->size * (int)w_roll(w, (uint64_t)f->places);
			}
		}
}

void world_init(struct world *w, uint64_t seed)
{
	*w = (struct world) { .dice = (seed + 1) * 0x9e3779b97f4a7c15u, .trace = w->trace };
	for (int i = 0; i < W_NODES; i++) {
		struct w_node *n = &w->nodes[i];
		snprintf(n->name, sizeof n->name, "node-%d", i);
		n->present = w_chance(w, 80);
		w_make_host(w, n);
		for (int k = 0; k < W_CARDS; k++) {
			snprintf(n->cards[k].uuid, sizeof n->cards[k].uuid, "GPU-%d-%d", i, k);
			w_make_card(w, &n->cards[k]);
		}
	}
	for (int i = 0; i < W_PODS; i++)
		w_make_pod(w, &w->pods[i]);
}

void world_fini(struct world *w)
{
	str_fini(&w->wrong);
}

struct w_card *w_find_card(struct w_node *n, const char *uuid)
{
	for (int i = 0; i < W_CARDS; i++)
		if (strcmp(n->cards[i].uuid, uuid) == 0)
			return &n->cards[i];
	return NULL;
}

/* ---- the pod's JSON */

static void write_container(const struct w_ask *a, int number, struct str *out)
{
	str_addf(out, "{\"name\":\"c%d\",", number);
	if (a->kind == W_SIDECAR)
		str_add(out, "\"restartPolicy\":\"Always\",");
	str_addf(out, "\"resources\":{\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"},\"limits\":{\"cpu\":\"2\"",
		 a->cpu_milli, a->host_mib);
	if (a->count > 0) {
		str_addf(out, ",\"nvidia.com/gpu\":\"%d\",\"nvidia.com/gpucores\":\"%d\"", a->count, a->cores);
		if (a->memory > 0)
			str_addf(out, ",\"nvidia.com/gpumem\":\"%d\"", a->memory);
		else
			str_addf(out, ",\"nvidia.com/gpumem-percentage\":\"%d\"", a->percent);
	}
	str_add(out, "}}}");
}

static void write_containers(const struct w_pod *p, bool app, struct str *out)
{
	const char *between = "";

	for (int i = 0; i < p->count; i++) {
		if ((p->asks[i].kind == W_APP) != app)
			continue;
		str_add(out, between);
		write_container(&p->asks[i], i, out);
		between = ",";
	}
}

static void write_devices(const struct w_pod *p, struct str *out)
{
	if (p->text.garbage) {
		str_add(out, "GPU-0-0,NVIDIA,100:;");
		return;
	}
	for (int i = 0; i < p->count; i++) {
		for (int k = 0; k < p->text.count; k++) {
			const struct w_share *s = &p->text.shares[k];
			if (s->container == i)
				str_addf(out, "%s,NVIDIA,%d,%d:", s->uuid, s->memory, s->cores);
		}
		str_addc(out, ';');
	}
}

static void write_instances(const struct w_pod *p, struct str *out)
{
	const char *between = "[";
	int device = 0;

	for (int i = 0; i < p->text.count; i++) {
		const struct w_share *s = &p->text.shares[i];
		device = i > 0 && s->container == s[-1].container ? device + 1 : 0;
		if (s->size == 0)
			continue;
		str_addf(out,
			 "%s{\\\"containerIndex\\\":%d,\\\"deviceIndex\\\":%d,\\\"gpuUUID\\\":\\\"%s\\\","
			 "\\\"profile\\\":\\\"%s\\\","
			 "\\\"placement\\\":{\\\"start\\\":%d,\\\"size\\\":%d}}",
			 between, s->container, device, s->uuid, w_profiles[s->size - 1].name, s->start, s->size);
		between = ",";
	}
	str_add(out, between[0] == '[' ? "[]" : "]");
}

static void write_wish(const char *key, const char *value, struct str *out)
{
	if (value != NULL)
		str_addf(out, ",\"%s\":\"%s\"", key, value);
}

static void write_status(const struct w_pod *p, struct str *out)
{
	const char *between = "", *now = p->text.bare && !p->text.garbage ? "\"waiting\":{}" : "\"running\":{}";

	str_addf(out, "\"status\":{\"phase\":\"%s\",\"initContainerStatuses\":[",
		 p->phase == W_ENDED     ? "Succeeded"
		 : p->phase == W_PENDING ? "Pending"
					 : "Running");
	for (int i = 0; i < p->count; i++) {
		if (p->asks[i].kind == W_APP)
			continue;
		str_addf(out, "%s{\"name\":\"c%d\",\"state\":{%s}}", between, i,
			 p->init_done && p->asks[i].kind == W_INIT ? "\"terminated\":{\"exitCode\":0}" : now);
		between = ",";
	}
	str_addf(out, "],\"containerStatuses\":[{\"name\":\"c\",\"state\":{%s}}]}", now);
}

void w_write_pod(const struct w_pod *p, const struct world *w, struct str *out)
{
	bool bound = p->phase != W_PENDING;

	str_addf(out, "{\"metadata\":{\"uid\":\"%s\",\"namespace\":\"%s\",\"name\":\"%s\",", p->uid, w_spaces[p->space],
		 p->name);
	if (p->phase == W_TERMINATING)
		str_add(out, "\"deletionTimestamp\":\"2026-11-29T20:20:54Z\",");
	str_add(out, "\"annotations\":{\"of\":\"the checker\"");
	write_wish("hami.io/gpu-scheduler-policy", p->card_policy, out);
	write_wish("hami.io/node-scheduler-policy", p->node_policy, out);
	write_wish("nvidia.com/numa-bind", p->numa_bind, out);
	if (bound && !p->text.bare) {
		write_wish("hami.io/vgpu-node", w->nodes[p->text.node].name, out);
		str_add(out, ",\"hami.io/vgpu-devices-allocated\":\"");
		write_devices(p, out);
		str_add(out, "\",\"hami.io/vgpu-mig-allocations\":\"");
		write_instances(p, out);
		str_addc(out, '"');
	}
	str_addf(out, "}},\"spec\":{\"nodeName\":\"%s\",\"priority\":%d,\"initContainers\":[",
		 bound ? w->nodes[p->text.node].name : "", p->priority);
	write_containers(p, false, out);
	str_add(out, "],\"containers\":[");
	write_containers(p, true, out);
	str_add(out, "]},");
	write_status(p, out);
	str_addc(out, '}');
}

/* ---- what is said */

void w_say(const struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void w_fail(struct world *w, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (w->wrong.n > 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	str_add(&w->wrong, text);
	w_say(w, "WRONG: %s", text);
}
