#include "agent/metrics/health.h"

#include "base/log.h"
#include "core/fmt.h"

/* A missing driver or kubelet is no reason to be restarted: so this says ok whatever they do. */
static int get_healthz(void *arg, struct str *body)
{
	(void)arg;
	str_add(body, "ok\n");
	return 200;
}

static int get_readyz(void *arg, struct str *body)
{
	const struct health_sources *s = arg;
	struct service_stats stats = resource_stats(s->resource);
	uint64_t hung = driver_hung_ms(s->driver);
	bool ready = resource_is_registered(s->resource);

	str_add(body, ready ? "ok\n" : "not registered with the kubelet\n");
	if (!ready && resource_trouble(s->resource)[0] != '\0')
		str_addf(body, "why: %s\n", resource_trouble(s->resource));
	if (hung > 0)
		str_addf(body, "nvml: no answer for %llu ms\n", (unsigned long long)hung);
	if (s->reload != NULL && reload_stats(s->reload).trouble[0] != '\0')
		str_addf(body, "configuration refused: %s\n", reload_stats(s->reload).trouble);
	str_addf(body, "allocations: %llu\nallocate errors: %llu\nstarts: %llu\nstart errors: %llu\n",
		 (unsigned long long)stats.allocations, (unsigned long long)stats.allocate_errors,
		 (unsigned long long)stats.starts, (unsigned long long)stats.start_errors);
	return ready ? 200 : 503;
}

static const struct http_page pages[] = {
	{ .path = "/healthz", .get = get_healthz },
	{ .path = "/readyz", .get = get_readyz },
};

int health_serve(struct loop *l, const char *address, struct health_sources *sources, struct http_server **out,
		 struct hm_err *e)
{
	if (http_server_new(l, address, pages, HM_COUNT(pages), sources, out, e) < 0)
		return hm_err_wrap(e, "--healthz-bind-address");
	log_info("serving health", KV("address", address), KV_U64("port", http_server_port(*out)));
	return 0;
}
