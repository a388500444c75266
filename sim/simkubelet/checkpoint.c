#include <string.h>

#include "contract/host.h"
#include "core/check.h"
#include "io/file.h"
#include "sim/simkubelet/node.h"

/* The kubelet's file, field for field. Its checksum is a hash of Go's print of the structs, which nobody but the
 * kubelet can make; ours is FNV-1a of Data's text. */

static void add_base64(struct str *out, const struct str *bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)str_text(bytes);

	for (size_t i = 0; i < bytes->n; i += 3) {
		size_t left = bytes->n - i;
		unsigned bits =
			(unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);

		str_addc(out, digits[bits >> 18]);
		str_addc(out, digits[bits >> 12 & 63]);
		str_addc(out, left > 1 ? digits[bits >> 6 & 63] : '=');
		str_addc(out, left > 2 ? digits[bits & 63] : '=');
	}
}

static int64_t numa_of(const struct plugin *p, const char *id)
{
	const struct device *d = p == NULL ? NULL : plugin_device(p, id);

	return d == NULL ? -1 : d->numa;
}

static void add_node_ids(struct str *out, const struct grant *g, const struct plugin *p, int64_t numa)
{
	bool first = true;

	str_addf(out, "%s\"%lld\":[", out->n > 1 ? "," : "", (long long)numa);
	for (size_t i = 0; i < g->ids.count; i++) {
		if (numa_of(p, g->ids.list[i]) != numa)
			continue;
		str_addf(out, "%s\"%s\"", first ? "" : ",", g->ids.list[i]);
		first = false;
	}
	str_addc(out, ']');
}

void checkpoint_note_devices(struct grant *g, const struct plugin *p)
{
	str_clear(&g->device_ids);
	str_addc(&g->device_ids, '{');
	for (size_t i = 0; i < g->ids.count; i++) {
		int64_t numa = numa_of(p, g->ids.list[i]);
		size_t first = 0;

		while (numa_of(p, g->ids.list[first]) != numa)
			first++;
		if (first == i)
			add_node_ids(&g->device_ids, g, p, numa);
	}
	str_addc(&g->device_ids, '}');
}

static void add_entry(struct str *out, const struct container *c, const struct grant *g)
{
	if (out->n > 0)
		str_addc(out, ',');
	str_addf(
		out,
		"{\"PodUID\":\"%s\",\"ContainerName\":\"%s\",\"ResourceName\":\"%s\",\"DeviceIDs\":%s,\"AllocResp\":\"",
		c->pod->uid, c->name, g->resource, str_text(&g->device_ids));
	add_base64(out, &g->answer);
	str_add(out, "\"}");
}

static void add_entries(struct str *out, const struct node *n)
{
	LIST_FOR_EACH (&n->pods, it) {
		const struct pod *p = HM_CONTAINER(it, struct pod, link);

		for (size_t i = 0; i < p->container_count; i++) {
			for (size_t k = 0; k < p->containers[i].grant_count; k++) {
				if (p->containers[i].grants[k].allocated)
					add_entry(out, &p->containers[i], &p->containers[i].grants[k]);
			}
		}
	}
}

static void add_registered(struct str *out, const struct node *n)
{
	const char *between = "";

	LIST_FOR_EACH (&n->plugins, it) {
		const struct plugin *p = HM_CONTAINER(it, struct plugin, link);
		const char *comma = "";

		if (!p->told_devices)
			continue;
		str_addf(out, "%s\"%s\":[", between, p->resource);
		for (size_t i = 0; i < p->device_count && p->client != NULL; i++) {
			if (!p->devices[i].healthy)
				continue;
			str_addf(out, "%s\"%s\"", comma, p->devices[i].id);
			comma = ",";
		}
		str_addc(out, ']');
		between = ",";
	}
}

int checkpoint_save(const struct node *n, struct hm_err *e)
{
	hm_auto_str entries = { 0 }, data = { 0 }, path = { 0 };
	uint32_t hash = 2166136261u;

	add_entries(&entries, n);
	str_add(&data, "{\"Data\":{\"PodDeviceEntries\":");
	if (entries.n > 0)
		str_addf(&data, "[%s]", str_text(&entries));
	else
		str_add(&data, "null");
	str_add(&data, ",\"RegisteredDevices\":{");
	add_registered(&data, n);
	str_add(&data, "}}");
	for (size_t i = 0; i < data.n; i++)
		hash = (hash ^ (unsigned char)data.p[i]) * 16777619u;
	str_addf(&data, ",\"Checksum\":%u}", hash);
	str_addf(&path, "%s/device-plugins/" HM_CHECKPOINT_FILE, n->dir);
	CHECK(!str_failed(&data) && !str_failed(&path));
	return file_swap(str_text(&path), data.p, data.n, 0600, e);
}
