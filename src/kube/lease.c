#include "kube/lease.h"

#include <string.h>

#include "io/json_write.h"

static int read_spec(const struct json_at *spec, struct kube_lease *out, struct hm_err *e)
{
	uint64_t duration = 0, transitions = 0;

	if (json_copy(spec, "holderIdentity", JSON_OPTIONAL, out->holder, sizeof out->holder, e) < 0 ||
	    json_copy(spec, "acquireTime", JSON_OPTIONAL, out->acquired, sizeof out->acquired, e) < 0 ||
	    json_copy(spec, "renewTime", JSON_OPTIONAL, out->renewed, sizeof out->renewed, e) < 0 ||
	    json_u64(spec, "leaseDurationSeconds", JSON_OPTIONAL, 0, INT32_MAX, &duration, e) < 0 ||
	    json_u64(spec, "leaseTransitions", JSON_OPTIONAL, 0, INT32_MAX, &transitions, e) < 0)
		return -HM_EPROTO;
	out->duration_s = (uint32_t)HM_MIN(duration, (uint64_t)KUBE_LEASE_MAX_S);
	out->transitions = (uint32_t)transitions;
	return 0;
}

int kube_lease_read(const struct cJSON *tree, struct kube_lease *out, struct hm_err *e)
{
	struct json_at root = json_root(tree), spec;
	struct kube_object o;
	struct hm_err own;

	e = e != NULL ? e : &own;
	*out = (struct kube_lease) { 0 };
	if (kube_object_read(tree, &o, e) < 0)
		return hm_err_wrap(e, "lease");
	memcpy(out->resource_version, o.resource_version, strlen(o.resource_version) + 1);
	if (json_object(&root, "spec", JSON_OPTIONAL, &spec, e) < 0 || read_spec(&spec, out, e) < 0) {
		e->code = HM_EPROTO;
		return hm_err_wrap(e, "lease");
	}
	return 0;
}

/* A MicroTime; three of its six digits are known. */
static void add_time(struct str *out, const char *name, uint64_t wall_ms)
{
	json_add_name(out, name);
	str_addc(out, '"');
	str_add_utc(out, wall_ms);
	str_addf(out, ".%03u000Z\"", (unsigned)(wall_ms % 1000));
}

static void add_spec(struct str *out, const struct kube_lease_write *w)
{
	str_add(out, "\"spec\":{");
	json_add_member(out, "holderIdentity", w->holder);
	str_addf(out, ",\"leaseDurationSeconds\":%u,\"leaseTransitions\":%u", w->duration_s, w->transitions);
	if (w->acquired_ms > 0)
		add_time(out, "acquireTime", w->acquired_ms);
	add_time(out, "renewTime", w->renewed_ms);
	str_addc(out, '}');
}

/* `begin` is the body up to and with metadata's brace, `name` metadata's one member. */
static int write_body(const char *begin, const char *name, const char *value, const struct kube_lease_write *w,
		      struct str *out, struct hm_err *e)
{
	str_clear(out);
	str_add(out, begin);
	json_add_member(out, name, value);
	str_add(out, "},");
	add_spec(out, w);
	str_addc(out, '}');
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "lease: out of memory") : 0;
}

int kube_lease_patch(const struct kube_lease_write *w, const char *resource_version, struct str *out, struct hm_err *e)
{
	return write_body("{\"metadata\":{", "resourceVersion", resource_version, w, out, e);
}

int kube_lease_text(const struct kube_lease_write *w, const char *name, struct str *out, struct hm_err *e)
{
	return write_body("{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{", "name", name,
			  w, out, e);
}
