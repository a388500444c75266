#include "gpu/events.h"

#include <stdlib.h>
#include <string.h>

#include "contract/names.h"
#include "core/fmt.h"
#include "gpu/driver.h"

enum { MAX_TAKES = 4096 }; /* of one call: a container can make Xids as fast as it likes */

static const unsigned long long wanted = NVML_EVENT_XID_CRITICAL | NVML_EVENT_DOUBLE_BIT_ECC;

struct event_set {
	char uuid[HM_UUID_BYTES]; /* "": free */
	struct nvml_event_set *set;
	bool unsupported;
};

struct event_sets {
	struct event_set cards[HM_MAX_CARDS];
};

void driver_free_events(struct gpu_driver *d)
{
	for (size_t i = 0; d->events != NULL && i < HM_MAX_CARDS; i++)
		if (d->events->cards[i].set != NULL)
			(void)NVML(d, nvmlEventSetFree, d->events->cards[i].set);
	free(d->events);
	d->events = NULL;
}

static int place_of(struct gpu_driver *d, const char *uuid, struct event_set **out, struct hm_err *e)
{
	struct event_set *spot = NULL;

	if (d->events == NULL && (d->events = calloc(1, sizeof *d->events)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "GPU events");
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct event_set *s = &d->events->cards[i];

		if (strcmp(s->uuid, uuid) == 0) {
			*out = s;
			return 0;
		}
		if (spot == NULL && s->uuid[0] == '\0')
			spot = s;
	}
	if (spot == NULL)
		return hm_err_set(e, HM_ELIMIT, "events of more than %d cards", (int)HM_MAX_CARDS);
	hm_fmt(spot->uuid, sizeof spot->uuid, "%s", uuid);
	*out = spot;
	return 0;
}

static bool is_missing(int result)
{
	return result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int fail(struct gpu_driver *d, struct event_set *s, int result, const char *call, struct hm_err *e)
{
	if (s->set != NULL)
		(void)NVML(d, nvmlEventSetFree, s->set);
	s->set = NULL;
	s->unsupported |= is_missing(result);
	driver_error(d, result, call, e);
	return hm_err_wrap(e, "GPU %s", s->uuid);
}

static int register_card(struct gpu_driver *d, struct event_set *s, struct hm_err *e)
{
	struct nvml_device *handle = NULL;
	unsigned long long types = 0;
	int r = driver_card(d, s->uuid, &handle, e), result;

	if (r < 0)
		return r;
	result = NVML(d, nvmlDeviceGetSupportedEventTypes, handle, &types);
	if (result == NVML_SUCCESS && (types & NVML_EVENT_XID_CRITICAL) == 0)
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result != NVML_SUCCESS)
		return fail(d, s, result, "nvmlDeviceGetSupportedEventTypes", e);
	result = NVML(d, nvmlEventSetCreate, &s->set);
	if (result != NVML_SUCCESS) {
		s->set = NULL;
		return fail(d, s, result, "nvmlEventSetCreate", e);
	}
	result = NVML(d, nvmlDeviceRegisterEvents, handle, types & wanted, s->set);
	return result == NVML_SUCCESS ? 0 : fail(d, s, result, "nvmlDeviceRegisterEvents", e);
}

/* The newer call tells the instances of a card in MIG mode, the older one leaves those fields alone. */
static int wait_none(struct gpu_driver *d, struct nvml_event_set *set, struct nvml_event_data *data)
{
	int result;

	*data = (struct nvml_event_data) { .gpu_instance = NVML_NO_INSTANCE, .compute_instance = NVML_NO_INSTANCE };
	result = NVML(d, nvmlEventSetWait_v2, set, data, 0);
	return result == NVML_ERROR_FUNCTION_NOT_FOUND ? NVML(d, nvmlEventSetWait, set, data, 0) : result;
}

void gpu_events_release(struct gpu_driver *d, const char *uuid)
{
	for (size_t i = 0; d->events != NULL && i < HM_MAX_CARDS; i++) {
		struct event_set *s = &d->events->cards[i];

		if (strcmp(s->uuid, uuid) != 0 || s->set == NULL)
			continue;
		(void)NVML(d, nvmlEventSetFree, s->set);
		s->set = NULL;
	}
}

static void note(const struct nvml_event_data *data, struct gpu_event *out, size_t *count)
{
	struct gpu_event e = { .kind = GPU_EVENT_XID,
			       .gpu_instance = data->gpu_instance,
			       .compute_instance = data->compute_instance,
			       .count = 1 };

	if (data->type == NVML_EVENT_DOUBLE_BIT_ECC)
		e.kind = GPU_EVENT_DOUBLE_BIT;
	else if (data->type == NVML_EVENT_XID_CRITICAL)
		e.xid = (unsigned)data->data;
	else
		return;
	for (size_t i = 0; i < *count; i++) {
		if (out[i].kind == e.kind && out[i].xid == e.xid && out[i].gpu_instance == e.gpu_instance &&
		    out[i].compute_instance == e.compute_instance) {
			out[i].count++;
			return;
		}
	}
	out[(*count)++] = e;
}

int gpu_events_take(struct gpu_driver *d, const char *uuid, struct gpu_event *out, size_t cap, size_t *count,
		    struct hm_err *e)
{
	struct event_set *s = NULL;
	int r = place_of(d, uuid, &s, e), result = NVML_SUCCESS;

	*count = 0;
	if (r < 0)
		return r;
	if (s->unsupported)
		return hm_err_set(e, HM_EUNSUPPORTED, "GPU %s: this driver tells no Xid events of it", uuid);
	if (s->set == NULL && (r = register_card(d, s, e)) < 0)
		return r;
	/* What has no room stays in the driver's queue: a program can make many kinds, and the card's own error is
	 * behind. */
	for (unsigned i = 0; i < MAX_TAKES && *count < cap; i++) {
		struct nvml_event_data data;

		result = wait_none(d, s->set, &data);
		if (result != NVML_SUCCESS)
			break;
		note(&data, out, count);
	}
	if (result == NVML_SUCCESS || result == NVML_ERROR_TIMEOUT || *count > 0)
		return 0;
	return fail(d, s, result, "nvmlEventSetWait", e);
}
