#include "kubelet/messages.h"

#include <stdlib.h>

#include "kubelet/proto/device_plugin.pb-c.h"
#include "rpc/limits.h"

/* protobuf-c's structs want char * for text that it only reads. */
#define TEXT(s) ((char *)(uintptr_t)(s))

static int check_container_count(size_t count, struct hm_err *e)
{
	if (count == 0 || count > PB_MAX_CONTAINERS)
		return hm_err_set(e, HM_EINVAL, "%zu container requests in one call, 1 to %d are taken", count,
				  PB_MAX_CONTAINERS);
	return 0;
}

int message_read_allocate(const void *bytes, size_t n, void **message, struct dp_container_request **out, size_t *count,
			  struct hm_err *e)
{
	pb_auto V1beta1__AllocateRequest *m =
		pb_unpack(&v1beta1__allocate_request__descriptor, "AllocateRequest", bytes, n, e);
	hm_auto_heap struct dp_container_request *requests = NULL;

	if (m == NULL)
		return -e->code;
	if (check_container_count(m->n_container_requests, e) < 0)
		return -e->code;
	requests = calloc(m->n_container_requests, sizeof *requests);
	if (requests == NULL)
		return hm_err_set(e, HM_ENOMEM, "AllocateRequest");
	for (size_t i = 0; i < m->n_container_requests; i++) {
		const V1beta1__ContainerAllocateRequest *c = m->container_requests[i];

		if (pb_check_ids("devices_ids", c->devices_ids, c->n_devices_ids, e) < 0)
			return -e->code;
		requests[i] = (struct dp_container_request) { (const char *const *)c->devices_ids, c->n_devices_ids };
	}
	*count = m->n_container_requests;
	*message = HM_STEAL(m);
	*out = HM_STEAL(requests);
	return 0;
}

static int read_preferred_one(const V1beta1__ContainerPreferredAllocationRequest *c, struct dp_preferred_request *out,
			      struct hm_err *e)
{
	int64_t size = c->allocation_size;

	if (pb_check_ids("available_deviceIDs", c->available_deviceids, c->n_available_deviceids, e) < 0)
		return -e->code;
	if (pb_check_ids("must_include_deviceIDs", c->must_include_deviceids, c->n_must_include_deviceids, e) < 0)
		return -e->code;
	if (size < 1 || (uint64_t)size > c->n_available_deviceids)
		return hm_err_set(e, HM_EINVAL, "allocation_size is %lld with %zu available ids", (long long)size,
				  c->n_available_deviceids);
	if (c->n_must_include_deviceids > (uint64_t)size)
		return hm_err_set(e, HM_EINVAL, "%zu ids must be included in an allocation of %lld",
				  c->n_must_include_deviceids, (long long)size);
	*out = (struct dp_preferred_request) {
		.available = (const char *const *)c->available_deviceids,
		.must = (const char *const *)c->must_include_deviceids,
		.available_count = c->n_available_deviceids,
		.must_count = c->n_must_include_deviceids,
		.size = size,
	};
	return 0;
}

int message_read_preferred(const void *bytes, size_t n, void **message, struct dp_preferred_request **out,
			   size_t *count, struct hm_err *e)
{
	pb_auto V1beta1__PreferredAllocationRequest *m = pb_unpack(&v1beta1__preferred_allocation_request__descriptor,
								   "PreferredAllocationRequest", bytes, n, e);
	hm_auto_heap struct dp_preferred_request *requests = NULL;

	if (m == NULL)
		return -e->code;
	if (check_container_count(m->n_container_requests, e) < 0)
		return -e->code;
	requests = calloc(m->n_container_requests, sizeof *requests);
	if (requests == NULL)
		return hm_err_set(e, HM_ENOMEM, "PreferredAllocationRequest");
	for (size_t i = 0; i < m->n_container_requests; i++) {
		if (read_preferred_one(m->container_requests[i], &requests[i], e) < 0)
			return -e->code;
	}
	*count = m->n_container_requests;
	*message = HM_STEAL(m);
	*out = HM_STEAL(requests);
	return 0;
}

int message_read_pre_start(const void *bytes, size_t n, void **message, struct dp_container_request *out,
			   struct hm_err *e)
{
	pb_auto V1beta1__PreStartContainerRequest *m =
		pb_unpack(&v1beta1__pre_start_container_request__descriptor, "PreStartContainerRequest", bytes, n, e);

	if (m == NULL)
		return -e->code;
	if (pb_check_ids("devices_ids", m->devices_ids, m->n_devices_ids, e) < 0)
		return -e->code;
	*out = (struct dp_container_request) { (const char *const *)m->devices_ids, m->n_devices_ids };
	*message = HM_STEAL(m);
	return 0;
}

static int written(const struct str *out)
{
	return str_failed(out) ? -HM_ENOMEM : 0;
}

int message_write_options(struct str *out)
{
	V1beta1__DevicePluginOptions m = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

	m.pre_start_required = true;
	m.get_preferred_allocation_available = true;
	pb_pack(out, &m);
	return written(out);
}

static void write_device(struct str *out, const struct dp_device *d)
{
	V1beta1__Device m = V1BETA1__DEVICE__INIT;
	V1beta1__TopologyInfo topology = V1BETA1__TOPOLOGY_INFO__INIT;
	V1beta1__NUMANode node = V1BETA1__NUMANODE__INIT;
	V1beta1__NUMANode *nodes[] = { &node };

	m.id = TEXT(d->id);
	m.health = TEXT(d->healthy ? "Healthy" : "Unhealthy");
	if (d->numa_node >= 0) {
		node.id = d->numa_node;
		topology.n_nodes = 1;
		topology.nodes = nodes;
		m.topology = &topology;
	}
	pb_pack_field(out, 1, &m); /* ListAndWatchResponse.devices */
}

/* Device by device: 16,000 message structs at once would cost 2 MB that a repeated field does not need. */
int message_write_devices(struct str *out, const struct dp_device *devices, size_t count, struct hm_err *e)
{
	size_t start = out->n;

	for (size_t i = 0; i < count && !str_failed(out); i++)
		write_device(out, &devices[i]);
	if (str_failed(out))
		return hm_err_set(e, HM_ENOMEM, "list of %zu devices", count);
	if (out->n - start > RPC_MAX_SEND_BYTES)
		return hm_err_set(
			e, HM_ELIMIT,
			"the list of %zu devices takes %zu bytes, the kubelet accepts %d: cut the cards into fewer "
			"slots",
			count, out->n - start, RPC_MAX_SEND_BYTES);
	return 0;
}

int message_write_preferred(struct str *out, const char *const *const *ids, const size_t *id_counts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		V1beta1__ContainerPreferredAllocationResponse m =
			V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;

		m.deviceids = (char **)(uintptr_t)ids[i];
		m.n_deviceids = id_counts[i];
		pb_pack_field(out, 1, &m); /* PreferredAllocationResponse.container_responses */
	}
	return written(out);
}

static void write_pairs(struct str *out, unsigned field, const struct dp_env *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		V1beta1__TextPair m = V1BETA1__TEXT_PAIR__INIT;

		m.key = TEXT(pairs[i].name);
		m.value = TEXT(pairs[i].value);
		pb_pack_field(out, field, &m);
	}
}

/* The fields of ContainerAllocateResponse one by one, for the same reason as the devices: no arrays of pointers. */
static void write_answer(struct str *out, const struct dp_container_answer *a)
{
	write_pairs(out, 1, a->envs, a->env_count);
	for (size_t i = 0; i < a->mount_count; i++) {
		V1beta1__Mount m = V1BETA1__MOUNT__INIT;

		m.container_path = TEXT(a->mounts[i].container_path);
		m.host_path = TEXT(a->mounts[i].host_path);
		m.read_only = a->mounts[i].read_only;
		pb_pack_field(out, 2, &m);
	}
	for (size_t i = 0; i < a->node_count; i++) {
		V1beta1__DeviceSpec m = V1BETA1__DEVICE_SPEC__INIT;

		m.container_path = TEXT(a->nodes[i].container_path);
		m.host_path = TEXT(a->nodes[i].host_path);
		m.permissions = TEXT(a->nodes[i].permissions);
		pb_pack_field(out, 3, &m);
	}
	write_pairs(out, 4, a->annotations, a->annotation_count);
	for (size_t i = 0; i < a->cdi_count; i++) {
		V1beta1__CDIDevice m = V1BETA1__CDIDEVICE__INIT;

		m.name = TEXT(a->cdi_names[i]);
		pb_pack_field(out, 5, &m);
	}
}

int message_write_allocate(struct str *out, const struct dp_container_answer *answers, size_t count)
{
	hm_auto_str one = { 0 };

	for (size_t i = 0; i < count; i++) {
		str_clear(&one);
		write_answer(&one, &answers[i]);
		if (str_failed(&one))
			return -HM_ENOMEM;
		pb_add_field(out, 1, &one); /* AllocateResponse.container_responses */
	}
	return written(out);
}
