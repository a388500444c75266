/* Reads pods, one JSON a line; says for each container that asks for devices which it got, as the agent sees it:
 *
 *     <container>\t<uuid>,<MiB>,<percent> <uuid>,...       or     <container>\t! <why not>
 *
 * and a line "." behind each pod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/entry_map.h"
#include "contract/hami.h"
#include "io/json.h"

static int entry_of(const struct pod_view *pod, const struct pod_devices *devices, const char *container,
		    struct hm_err *e)
{
	struct claim_card cards[HM_MAX_CARDS];
	size_t entry = 0, count = 0;

	if (entry_map_find(pod, devices, container, &entry, e) < 0 ||
	    entry_map_cards(devices, entry, cards, &count, e) < 0)
		return -e->code;
	printf("%s\t", container);
	for (size_t i = 0; i < devices->entries[entry].count; i++) {
		const struct device_share *s = &devices->shares[devices->entries[entry].first + i];

		printf("%s%s,%d,%d", i > 0 ? " " : "", s->uuid, s->memory_mib, s->cores);
	}
	putchar('\n');
	return 0;
}

static int map_pod(const char *line, size_t n, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto(pod_view) *pod = NULL;
	hm_auto_pod_devices devices = { 0 };
	struct kube_object object;

	if (json_parse(line, n, &tree, e) < 0 || kube_object_read(tree, &object, e) < 0 ||
	    pod_view_new(&object, HAMI_RESOURCE_GPU, &pod, e) < 0 ||
	    devices_text_parse(pod_view_text(pod, POD_ALLOCATED), &devices, e) < 0)
		return -e->code;
	for (size_t i = 0; i < pod->container_count; i++) {
		const struct pod_container *c = &pod->containers[i];

		if (c->gpus > 0 && entry_of(pod, &devices, c->name, e) < 0)
			printf("%s\t! %s\n", c->name, e->msg);
	}
	puts(".");
	return 0;
}

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct hm_err e;

		if (map_pod(line, (size_t)n, &e) < 0)
			printf("\t! %s\n.\n", e.msg);
	}
	free(line);
	return 0;
}
