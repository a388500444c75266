/* Temperature, power and clocks, as functions of how busy the card is; and field values, which repeat them. */
#include <string.h>

#include "core/num.h"
#include "sim/nvml/handle.h"
#include "sim/nvml/utilization.h"

enum { IDLE_CELSIUS = 32, BUSY_CELSIUS = 75, IDLE_MHZ = 300 };

static unsigned power_mw(const struct sim_card *c)
{
	uint64_t range = c->info.power_limit_mw - c->info.idle_power_mw;

	return c->info.idle_power_mw + (unsigned)(range * utilization_percent(c) / 100);
}

static unsigned long long energy_mj(const struct sim_card *c)
{
	/* mW times ns is 1e-12 J: first to milliseconds, so that years fit. */
	uint64_t up_ms = sim_now_ns() / 1000000, busy_ms = atomic_load(&c->busy_ns) / 1000000;

	return ((uint64_t)c->info.idle_power_mw * up_ms +
		(uint64_t)(c->info.power_limit_mw - c->info.idle_power_mw) * busy_ms) /
	       1000;
}

/* ---- Temperature */

int nvmlDeviceGetTemperature(struct nvml_device *device, unsigned sensor, unsigned *celsius)
{
	CARD(device, celsius);
	if (sensor != NVML_TEMPERATURE_GPU)
		return NVML_ERROR_INVALID_ARGUMENT;
	*celsius = IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * utilization_percent(c) / 100;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, unsigned threshold, unsigned *celsius)
{
	static const unsigned thresholds[] = { [NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = 96,
					       [NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = 93,
					       [NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = 95,
					       [NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = 89 };
	CARD(device, celsius);

	if (threshold > NVML_TEMPERATURE_THRESHOLD_GPU_MAX)
		return NVML_ERROR_NOT_SUPPORTED;
	*celsius = thresholds[threshold];
	return NVML_SUCCESS;
}

/* ---- Power */

ANSWER(nvmlDeviceGetPowerUsage, power_mw(c))
ANSWER(nvmlDeviceGetPowerManagementMode, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetPowerManagementLimit, c->info.power_limit_mw)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, c->info.power_limit_mw)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, c->info.power_limit_mw)
ANSWER(nvmlDeviceGetPerformanceState, utilization_percent(c) > 0 ? NVML_PSTATE_0 : NVML_PSTATE_8)

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned *min, unsigned *max)
{
	CARD(device, min);
	if (max == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*min = c->info.power_limit_mw / 2;
	*max = c->info.power_limit_mw;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *millijoules)
{
	CARD(device, millijoules);
	*millijoules = energy_mj(c);
	return NVML_SUCCESS;
}

/* ---- Clocks */

static int max_clock(const struct sim_card *c, unsigned clock, unsigned *mhz)
{
	if (clock > NVML_CLOCK_VIDEO)
		return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = clock == NVML_CLOCK_MEM ? c->info.memory_clock_mhz : c->info.sm_clock_mhz;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, unsigned clock, unsigned *mhz)
{
	CARD(device, mhz);
	return max_clock(c, clock, mhz);
}

int nvmlDeviceGetApplicationsClock(struct nvml_device *device, unsigned clock, unsigned *mhz)
{
	CARD(device, mhz);
	return max_clock(c, clock, mhz);
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, unsigned clock, unsigned *mhz)
{
	int r;
	CARD(device, mhz);

	r = max_clock(c, clock, mhz);
	if (r == NVML_SUCCESS && clock != NVML_CLOCK_MEM && utilization_percent(c) == 0)
		*mhz = IDLE_MHZ;
	return r;
}

/* ---- Field values */

static unsigned link_count(const struct sim_card *c)
{
	unsigned n = 0;

	while (n < SIM_MAX_LINKS && c->info.links[n].remote != SIM_LINK_NONE)
		n++;
	return n;
}

static void set_u32(struct nvml_field_value *v, unsigned value)
{
	v->value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	v->value.ui = value;
}

static bool tells_action(void)
{
	const char *version = sim_node()->driver_version, *dot = strchr(version, '.');
	uint64_t branch;

	return dot != NULL && num_u64(version, (size_t)(dot - version), 9999, &branch) && branch >= 565;
}

static int read_field(const struct sim_card *c, struct nvml_field_value *v)
{
	switch (v->field) {
	case NVML_FI_DEV_ECC_CURRENT: set_u32(v, c->info.ecc); return NVML_SUCCESS;
	case NVML_FI_DEV_NVLINK_LINK_COUNT: set_u32(v, link_count(c)); return NVML_SUCCESS;
	case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
		/* 25 GB/s a link from NVLink 2 to 4 (NVIDIA's NVLink table), 26562 as the driver counts it */
		set_u32(v, link_count(c) > 0 ? 26562 : 0);
		return NVML_SUCCESS;
	case NVML_FI_DEV_POWER_AVERAGE:
	case NVML_FI_DEV_POWER_INSTANT: set_u32(v, power_mw(c)); return NVML_SUCCESS;
	case NVML_FI_DEV_POWER_MIN_LIMIT: set_u32(v, c->info.power_limit_mw / 2); return NVML_SUCCESS;
	case NVML_FI_DEV_POWER_MAX_LIMIT:
	case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
	case NVML_FI_DEV_POWER_CURRENT_LIMIT: set_u32(v, c->info.power_limit_mw); return NVML_SUCCESS;
	case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION:
		if (!tells_action())
			return NVML_ERROR_NOT_SUPPORTED;
		set_u32(v, atomic_load(&c->action));
		return NVML_SUCCESS;
	case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
		v->value_type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		v->value.ull = energy_mj(c);
		return NVML_SUCCESS;
	default: return v->field < NVML_FI_MAX ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
	}
}

int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *values)
{
	CARD(device, values);
	for (int i = 0; i < count; i++) {
		values[i].timestamp_us = (long long)stamp_us(sim_now_ns());
		values[i].latency_us = 0;
		values[i].value = (union nvml_value) { 0 };
		values[i].result = read_field(c, &values[i]);
	}
	return NVML_SUCCESS;
}
