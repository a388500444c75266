/* Checkpoints and claims made by hand for the tests of the agent. */
#ifndef HM_TESTS_AGENT_CHECKPOINT_TEXT_H
#define HM_TESTS_AGENT_CHECKPOINT_TEXT_H

#include <stdio.h>
#include <string.h>

#include "agent/claims/claims.h"
#include "harness/unit.h"
#include "kubelet/checkpoint.h"

/* An entry of the kubelet's checkpoint, as its JSON has it; `response` is the Allocate answer in base64. */
#define ENTRY(pod, container, ids, response)                                                                           \
	"{\"PodUID\":\"" pod "\",\"ContainerName\":\"" container                                                       \
	"\",\"ResourceName\":\"hami.com/vgpu\",\"DeviceIDs\":{\"0\":[" ids "]},\"AllocResp\":\"" response "\"}"
/* base64 of cdi_devices { name: "hami.io/vgpu=v.<n>" }: field 5, a message with field 1. Made by Python's protobuf. */
#define CDI_5 "KhIKEGhhbWkuaW8vdmdwdT12LjU="
#define CDI_6 "KhIKEGhhbWkuaW8vdmdwdT12LjY="
#define CDI_OTHER "KhIKEG52aWRpYS5jb20vZ3B1PTA="
#define NO_CDI ""
/* The same of mounts { container_path: "/run/hami-vgpu/usage" host_path: "/s/alloc/5/usage" (elsewhere:
 * "/other/alloc/6/usage") }. */
#define USAGE_5 "EigKFC9ydW4vaGFtaS12Z3B1L3VzYWdlEhAvcy9hbGxvYy81L3VzYWdl"
#define USAGE_ELSEWHERE "EiwKFC9ydW4vaGFtaS12Z3B1L3VzYWdlEhQvb3RoZXIvYWxsb2MvNi91c2FnZQ=="

static inline struct checkpoint *make_checkpoint(const char *entries)
{
	struct checkpoint *c = NULL;
	char text[4096];
	struct hm_err e;
	int n = snprintf(text, sizeof text,
			 "{\"Data\":{\"PodDeviceEntries\":[%s],\"RegisteredDevices\":{}},\"Checksum\":1}", entries);

	if (checkpoint_parse(text, (size_t)n, NULL, &c, &e) < 0)
		fail_msg("%s", e.msg);
	return c;
}

/* ids: up to two, NULL for none. */
static inline struct claim make_claim(uint64_t number, const char *pod_uid, const char *cdi, const char *first,
				      const char *second)
{
	struct claim c = { .priority = 1, .number = number, .state = CLAIM_ACTIVE, .created_ms = 1, .card_count = 1 };
	const char *ids[2] = { first, second };

	snprintf(c.pod_uid, sizeof c.pod_uid, "%s", pod_uid);
	snprintf(c.container, sizeof c.container, "c%llu", (unsigned long long)number);
	snprintf(c.cdi, sizeof c.cdi, "%s", cdi);
	snprintf(c.resource, sizeof c.resource, "hami.com/vgpu");
	snprintf(c.cards[0].uuid, sizeof c.cards[0].uuid, "GPU-0");
	c.cards[0].memory_bytes = 1 << 20;
	c.cards[0].cores = 25;
	c.devices = calloc(2, sizeof *c.devices);
	assert_non_null(c.devices);
	for (size_t i = 0; i < 2 && ids[i] != NULL; i++)
		snprintf(c.devices[c.device_count++], sizeof *c.devices, "%s", ids[i]);
	return c;
}

static inline void put_claim(struct claims *s, struct claim c)
{
	struct hm_err e;

	if (claims_put(s, &c, &e) < 0)
		fail_msg("%s", e.msg);
}

#endif
