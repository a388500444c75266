#include "sim/nvml/utilization.h"

#include <string.h>

#include "core/macros.h"
#include "sim/nvml/handle.h"

unsigned long long stamp_us(uint64_t node_ns)
{
	return (unsigned long long)((int64_t)node_ns + sim_node()->wall_offset_ns) / 1000;
}

static unsigned percent(uint64_t busy, uint64_t span)
{
	return span == 0 ? 0 : (unsigned)HM_MIN((busy * 100 + span / 2) / span, (uint64_t)100);
}

/* The i-th sample from the oldest that is kept; NULL where it is being replaced. */
static const struct sim_sample *sample_at(const struct sim_card *c, uint32_t i, uint64_t *end)
{
	const struct sim_sample *s = &c->samples[i % SIM_SAMPLES];

	*end = atomic_load(&s->end_ns);
	return *end != 0 ? s : NULL;
}

static uint32_t first_sample(uint32_t head)
{
	return head > SIM_SAMPLES ? head - SIM_SAMPLES : 0;
}

unsigned utilization_percent(const struct sim_card *card)
{
	uint32_t head;
	uint64_t end;
	const struct sim_sample *s;

	(void)sim_sync();
	head = atomic_load(&card->sample_head);
	s = head > 0 ? sample_at(card, head - 1, &end) : NULL;
	return s != NULL ? percent(s->busy_ns, s->span_ns) : 0;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
	CARD(device, utilization);
	*utilization = (struct nvml_utilization) { .gpu = utilization_percent(c) };
	return NVML_SUCCESS;
}

static int fixed_zero(const struct sim_card *c, unsigned *value, unsigned *period_us)
{
	(void)c;
	if (period_us == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*value = 0;
	*period_us = (unsigned)(SIM_SAMPLE_NS / 1000);
	return NVML_SUCCESS;
}

int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, unsigned *value, unsigned *period_us)
{
	CARD(device, value);
	return fixed_zero(c, value, period_us);
}

int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, unsigned *value, unsigned *period_us)
{
	CARD(device, value);
	return fixed_zero(c, value, period_us);
}

int nvmlDeviceGetSamples(struct nvml_device *device, unsigned type, unsigned long long last_seen_us,
			 unsigned *value_type, unsigned *count, struct nvml_sample *samples)
{
	unsigned room, found = 0;
	uint32_t head;
	CARD(device, count);

	if (value_type == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (type != NVML_GPU_UTILIZATION_SAMPLES)
		return NVML_ERROR_NOT_SUPPORTED;
	(void)sim_sync();
	room = samples != NULL ? *count : SIM_SAMPLES;
	head = atomic_load(&c->sample_head);
	for (uint32_t i = first_sample(head); i < head && found < room; i++) {
		uint64_t end;
		const struct sim_sample *s = sample_at(c, i, &end);

		if (s == NULL || stamp_us(end) <= last_seen_us)
			continue;
		if (samples != NULL)
			samples[found] =
				(struct nvml_sample) { stamp_us(end), { .ui = percent(s->busy_ns, s->span_ns) } };
		found++;
	}
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	*count = found;
	return found > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* ---- By process */

struct use {
	unsigned pid, sm;
	unsigned long long at_us; /* end of the last sample in which it did something */
};

/* One entry for each process that was busy in the samples after last_seen; returns how many. */
static unsigned collect(const struct sim_card *c, unsigned long long last_seen_us, struct use out[SIM_MAX_PROCESSES])
{
	uint64_t busy[SIM_MAX_PROCESSES], span = 0;
	unsigned count = 0;
	uint32_t head;

	(void)sim_sync();
	head = atomic_load(&c->sample_head);
	for (uint32_t i = first_sample(head); i < head; i++) {
		uint64_t end;
		const struct sim_sample *s = sample_at(c, i, &end);

		if (s == NULL || stamp_us(end) <= last_seen_us)
			continue;
		span += s->span_ns;
		for (unsigned p = 0; p < SIM_MAX_PROCESSES; p++) {
			unsigned at = 0;

			if (s->processes[p].busy_ns == 0 || s->processes[p].pid == 0)
				continue;
			while (at < count && out[at].pid != s->processes[p].pid)
				at++;
			if (at == SIM_MAX_PROCESSES)
				continue;
			if (at == count) {
				out[count++] = (struct use) { .pid = s->processes[p].pid };
				busy[at] = 0;
			}
			busy[at] += s->processes[p].busy_ns;
			out[at].at_us = stamp_us(end);
		}
	}
	for (unsigned i = 0; i < count; i++)
		out[i].sm = percent(busy[i], span);
	return count;
}

int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
				    unsigned *count, unsigned long long last_seen_us)
{
	struct use use[SIM_MAX_PROCESSES];
	unsigned found, room;
	CARD(device, count);

	found = collect(c, last_seen_us, use);
	room = samples != NULL ? *count : 0;
	*count = found;
	if (found == 0)
		return NVML_ERROR_NOT_FOUND;
	if (found > room) {
		/* The driver names its own upper bound, so that a process that comes meanwhile still fits. */
		*count = SIM_MAX_PROCESSES;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < found; i++)
		samples[i] = (struct nvml_process_utilization) { .pid = use[i].pid,
								 .timestamp_us = use[i].at_us,
								 .sm = use[i].sm };
	return NVML_SUCCESS;
}

int nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device, struct nvml_processes_utilization_info *info)
{
	struct use use[SIM_MAX_PROCESSES];
	unsigned found, room;
	CARD(device, info);

	if (info->version != NVML_PROCESSES_UTILIZATION_INFO_V1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	found = collect(c, info->last_seen_us, use);
	room = info->processes != NULL ? info->count : 0;
	info->count = found;
	if (found == 0)
		return NVML_ERROR_NOT_FOUND;
	if (found > room) {
		info->count = SIM_MAX_PROCESSES;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < found; i++)
		info->processes[i] = (struct nvml_process_utilization_info) { .pid = use[i].pid,
									      .timestamp_us = use[i].at_us,
									      .sm = use[i].sm };
	return NVML_SUCCESS;
}
