#include "agent/cards/driver.h"

#include <stdlib.h>
#include <string.h>

#include "agent/options/nvml_library.h"
#include "base/log.h"
#include "gpu/scan.h"

struct driver {
	struct loop *loop;
	struct worker *worker;
	struct driver_place place;
	struct driver_listener listener;
	struct loop_timer *next, *watch;
	bool hung;            /* said in the log */
	uint64_t begun_ms;    /* the last scan */
	bool stopping, again; /* `again`: another scan behind the one under way */
	void (*closed)(void *arg);
	void *closed_arg;
	/* The worker's between submit and done. */
	struct worker_job job, close_job;
	struct gpu_driver *gpu;
	struct inventory *scanned;
	struct hm_err err;
};

static int open_nvml(struct driver *d)
{
	const char *library = d->place.library;
	char found[PATH_MAX];

	if (library == NULL && nvml_library_find(d->place.root, found))
		library = found;
	return gpu_driver_open(library, &d->gpu, &d->err);
}

static void in_worker(struct worker_job *job)
{
	struct driver *d = HM_CONTAINER(job, struct driver, job);

	d->scanned = NULL;
	if (d->gpu == NULL && open_nvml(d) < 0)
		return;
	if (gpu_scan(d->gpu, &d->scanned, &d->err) < 0) {
		/* A reloaded driver is met again only by a new nvmlInit. */
		gpu_driver_close(HM_STEAL(d->gpu));
	}
}

static void start(void *arg)
{
	struct driver *d = arg;

	d->begun_ms = loop_now_ms(d->loop);
	worker_submit(d->worker, &d->job);
	loop_timer_arm(d->watch, DRIVER_HANG_MS);
}

static void on_scanned(struct worker_job *job)
{
	struct driver *d = HM_CONTAINER(job, struct driver, job);
	hm_auto(inventory) *inv = HM_STEAL(d->scanned);

	loop_timer_disarm(d->watch);
	if (d->hung)
		log_info("NVML answers again");
	d->hung = false;
	if (d->stopping)
		return;
	loop_timer_arm(d->next, d->again ? 0 : inv != NULL ? DRIVER_RESCAN_MS : DRIVER_RETRY_MS);
	d->again = false;
	d->listener.scanned(d->listener.arg, inv, inv != NULL ? NULL : &d->err);
}

static void on_watch(void *arg)
{
	struct driver *d = arg;

	d->hung = true;
	log_error(
		"NVML does not answer; the cards are offered as last seen, running and new containers are not held up",
		KV_U64("since_ms", worker_busy_ms(d->worker, loop_now_ms(d->loop))));
}

static void close_in_worker(struct worker_job *job)
{
	gpu_driver_close(HM_STEAL(HM_CONTAINER(job, struct driver, close_job)->gpu));
}

static void on_closed(struct worker_job *job)
{
	struct driver *d = HM_CONTAINER(job, struct driver, close_job);

	d->closed(d->closed_arg);
}

void driver_stop(struct driver *d, void (*closed)(void *arg), void *arg)
{
	loop_timer_disarm(d->next);
	d->stopping = true;
	d->closed = closed;
	d->closed_arg = arg;
	worker_submit(d->worker, &d->close_job);
}

void driver_scan_soon(struct driver *d)
{
	uint64_t since = loop_now_ms(d->loop) - d->begun_ms;

	if (d->job.pending)
		d->again = true;
	else if (!d->stopping)
		loop_timer_arm(d->next, since < DRIVER_RETRY_MS ? DRIVER_RETRY_MS - since : 0);
}

struct gpu_driver *driver_gpu(const struct driver *d)
{
	return d->gpu;
}

uint64_t driver_hung_ms(const struct driver *d)
{
	return d->hung ? worker_busy_ms(d->worker, loop_now_ms(d->loop)) : 0;
}

int driver_new(struct loop *l, struct worker *w, const struct driver_place *place,
	       const struct driver_listener *listener, struct driver **out, struct hm_err *e)
{
	struct driver *d = calloc(1, sizeof *d);

	if (d == NULL)
		return hm_err_set(e, HM_ENOMEM, "driver");
	*d = (struct driver) { .loop = l, .worker = w, .place = *place, .listener = *listener };
	d->job = (struct worker_job) { in_worker, on_scanned, NULL };
	d->close_job = (struct worker_job) { close_in_worker, on_closed, NULL };
	if (loop_timer_new(l, start, d, &d->next, e) < 0 || loop_timer_new(l, on_watch, d, &d->watch, e) < 0) {
		loop_timer_free(d->next);
		free(d);
		return hm_err_wrap(e, "driver");
	}
	start(d);
	*out = d;
	return 0;
}

void driver_free(struct driver *d, bool worker_ended)
{
	if (d == NULL)
		return;
	loop_timer_free(d->next);
	loop_timer_free(d->watch);
	if (!worker_ended)
		return; /* the hung call still uses NVML, whosever job it is */
	inventory_free(d->scanned);
	gpu_driver_close(d->gpu);
	free(d);
}
