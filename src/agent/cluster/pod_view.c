#include "agent/cluster/pod_view.h"

#include <stdlib.h>
#include <string.h>

#include "contract/container.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "core/num.h"
#include "model/placement/words.h"

static const char *const keys[POD_ANNOTATIONS] = {
	[POD_TO_ALLOCATE] = HAMI_POD_TO_ALLOCATE,
	[POD_ALLOCATED] = HAMI_POD_ALLOCATED,
	[POD_MIG_ALLOCATIONS] = HAMI_POD_MIG_ALLOCATIONS,
	[POD_NODE] = HAMI_POD_NODE,
	[POD_TIME] = HAMI_POD_TIME,
	[POD_BIND_TIME] = HAMI_POD_BIND_TIME,
	[POD_BIND_PHASE] = HAMI_POD_BIND_PHASE,
	[POD_SIGNATURE] = HAMI_POD_SIGNATURE,
};

/* Exact, as Kubernetes' names are. */
static const struct cJSON *member(const struct cJSON *at, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(at, key);
}

static const char *text_of(const struct cJSON *at, const char *key)
{
	return cJSON_GetStringValue(member(at, key));
}

static bool copy_text(const char *from, char *out, size_t cap)
{
	return from == NULL || hm_fmt(out, cap, "%s", from) < cap;
}

/* ---- quantities */

/* A count as the API server writes it: digits, with a decimal suffix where there are enough zeros ("2k"). */
static bool read_count(const char *text, uint32_t *out)
{
	static const struct {
		char suffix;
		uint64_t times;
	} suffixes[] = { { 'k', 1000 }, { 'M', 1000000 }, { 'G', 1000000000 } };
	size_t n = strlen(text);
	uint64_t times = 1, value;

	for (size_t i = 0; i < HM_COUNT(suffixes); i++)
		if (n > 0 && text[n - 1] == suffixes[i].suffix)
			times = suffixes[i].times;
	if (!num_u64(text, times > 1 ? n - 1 : n, UINT32_MAX, &value) || !num_mul(value, times, &value) ||
	    value > UINT32_MAX)
		return false;
	*out = (uint32_t)value;
	return true;
}

static int read_gpus(const struct cJSON *tree, const char *resource, struct pod_container *c, struct hm_err *e)
{
	const struct cJSON *resources = member(tree, "resources");
	const char *text = text_of(member(resources, "limits"), resource);

	if (text == NULL)
		text = text_of(member(resources, "requests"), resource);
	if (text != NULL && !read_count(text, &c->gpus))
		return hm_err_set(e, HM_EINVAL, "container %s asks for \"%.40s\" of %s, which is no count", c->name,
				  text, resource);
	return 0;
}

/* ---- environment */

static void keep_word(const char *value, char out[16])
{
	if (value == NULL || hm_fmt(out, 16, "%s", value) >= 16)
		out[0] = '\0';
}

/* "none" is what HAMi's webhook sets where there are no cards. */
static bool shows_cards(const char *value)
{
	return value[0] != '\0' && strcmp(value, "none") != 0 && strcmp(value, "void") != 0;
}

static void read_env(const struct cJSON *tree, struct pod_container *c)
{
	const struct cJSON *item;

	cJSON_ArrayForEach(item, member(tree, "env"))
	{
		const char *name = text_of(item, "name");
		const char *value = text_of(item, "value");

		if (name == NULL)
			continue;
		if (strcmp(name, HAMI_ENV_DISABLE_CONTROL) == 0)
			c->disable_control |= text_is_true(value);
		else if (strcmp(name, HM_ENV_VISIBLE_DEVICES) == 0)
			c->visible_devices |= value == NULL || shows_cards(value);
		else if (strcmp(name, HM_ENV_PRIORITY) == 0)
			keep_word(value, c->priority);
		else if (strcmp(name, HM_ENV_POLICY) == 0)
			keep_word(value, c->policy);
	}
}

/* ---- containers */

static int read_container(const struct cJSON *tree, const char *resource, bool init, struct pod_container *c,
			  struct hm_err *e)
{
	const char *name = text_of(tree, "name");
	const char *restart = text_of(tree, "restartPolicy");

	if (name == NULL || name[0] == '\0' || !copy_text(name, c->name, sizeof c->name))
		return hm_err_set(e, HM_EPROTO, "a container without a name, or with one of more than %d bytes",
				  POD_LABEL_BYTES - 1);
	c->kind = POD_APP;
	if (init)
		c->kind = restart != NULL && strcmp(restart, "Always") == 0 ? POD_SIDECAR : POD_INIT;
	read_env(tree, c);
	return read_gpus(tree, resource, c, e);
}

static int read_list(const struct cJSON *list, const char *resource, bool init, struct pod_view *v, struct hm_err *e)
{
	const struct cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		if (read_container(item, resource, init, &v->containers[v->container_count], e) < 0)
			return -e->code;
		v->container_count++;
	}
	return 0;
}

static int read_containers(const struct cJSON *spec, const char *resource, struct pod_view *v, struct hm_err *e)
{
	const struct cJSON *init = member(spec, "initContainers"), *app = member(spec, "containers");
	size_t count = (size_t)cJSON_GetArraySize(init) + (size_t)cJSON_GetArraySize(app);

	if (!cJSON_IsArray(app))
		return hm_err_set(e, HM_EPROTO, "a pod without containers");
	if (count > POD_MAX_CONTAINERS)
		return hm_err_set(e, HM_ELIMIT, "%zu containers; at most %d", count, (int)POD_MAX_CONTAINERS);
	v->containers = calloc(count + 1, sizeof *v->containers);
	if (v->containers == NULL)
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	if (read_list(init, resource, true, v, e) < 0)
		return -e->code;
	return read_list(app, resource, false, v, e);
}

static void read_states(const struct cJSON *list, struct pod_view *v)
{
	const struct cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		const struct cJSON *state = member(item, "state");
		const char *name = text_of(item, "name");

		for (size_t i = 0; name != NULL && i < v->container_count; i++) {
			struct pod_container *c = &v->containers[i];

			if (strcmp(c->name, name) != 0)
				continue;
			if (cJSON_IsObject(member(state, "running")))
				c->state = POD_RUNNING;
			else if (cJSON_IsObject(member(state, "terminated")))
				c->state = POD_TERMINATED;
		}
	}
}

/* A quarter of a MiB that any author may write is not kept for pods that are none of ours. */
static bool asks(const struct pod_view *v)
{
	for (size_t i = 0; i < v->container_count; i++)
		if (v->containers[i].gpus > 0)
			return true;
	return false;
}

/* ---- the rest */

/* Each vendor has a key of its own, whose entries its plugin erases one by one; an entry has commas. */
static bool other_vendor_waits(const struct cJSON *annotations)
{
	static const char tail[] = HAMI_TO_ALLOCATE_TAIL;
	const struct cJSON *item;

	cJSON_ArrayForEach(item, annotations)
	{
		const char *text = cJSON_GetStringValue(item);
		size_t n = strlen(item->string);

		if (text != NULL && n >= sizeof tail && strcmp(item->string + n - (sizeof tail - 1), tail) == 0 &&
		    strcmp(item->string, HAMI_POD_TO_ALLOCATE) != 0 && strchr(text, ',') != NULL)
			return true;
	}
	return false;
}

static int read_annotations(const struct cJSON *meta, struct pod_view *v, struct hm_err *e)
{
	const struct cJSON *tree = member(meta, "annotations");

	v->others_wait = other_vendor_waits(tree);
	for (size_t i = 0; i < POD_ANNOTATIONS; i++) {
		const char *text = text_of(tree, keys[i]);

		if (text == NULL)
			continue;
		if (strlen(text) > POD_MAX_ANNOTATION_BYTES)
			return hm_err_set(e, HM_ELIMIT, "annotation %s is longer than %d bytes", keys[i],
					  (int)POD_MAX_ANNOTATION_BYTES);
		v->annotations[i] = strdup(text);
		if (v->annotations[i] == NULL)
			return hm_err_set(e, HM_ENOMEM, "read a pod");
	}
	return 0;
}

static int read_identity(const struct kube_object *o, struct pod_view *v, struct hm_err *e)
{
	const struct cJSON *spec = member(o->tree, "spec"), *status = member(o->tree, "status");
	const char *phase = text_of(status, "phase");

	if (!copy_text(o->uid, v->uid, sizeof v->uid) || !copy_text(o->name, v->name, sizeof v->name) ||
	    !copy_text(o->name_space, v->name_space, sizeof v->name_space) ||
	    !copy_text(text_of(spec, "nodeName"), v->node, sizeof v->node))
		return hm_err_set(e, HM_EPROTO, "pod %s: UID, name, namespace or node is too long", o->key);
	keep_word(phase, v->phase);
	v->terminal = strcmp(v->phase, "Succeeded") == 0 || strcmp(v->phase, "Failed") == 0;
	v->deleting = text_of(member(o->tree, "metadata"), "deletionTimestamp") != NULL;
	return 0;
}

/* What is wrong is kept for whoever asks; memory that is short is the caller's. */
static int keep_trouble(struct pod_view *v, struct hm_err *e)
{
	if (e->code == HM_ENOMEM)
		return -e->code;
	v->container_count = 0;
	v->trouble = strdup(e->msg);
	return v->trouble != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "read a pod");
}

int pod_view_new(const struct kube_object *o, const char *resource, struct pod_view **out, struct hm_err *e)
{
	hm_auto(pod_view) *v = calloc(1, sizeof *v);
	const struct cJSON *status = member(o->tree, "status");

	if (v == NULL)
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	if (read_identity(o, v, e) < 0)
		return -e->code;
	if ((read_containers(member(o->tree, "spec"), resource, v, e) < 0 ||
	     (asks(v) && read_annotations(member(o->tree, "metadata"), v, e) < 0)) &&
	    keep_trouble(v, e) < 0)
		return -e->code;
	read_states(member(status, "initContainerStatuses"), v);
	read_states(member(status, "containerStatuses"), v);
	*out = HM_STEAL(v);
	return 0;
}

void pod_view_free(struct pod_view *v)
{
	if (v == NULL)
		return;
	for (size_t i = 0; i < POD_ANNOTATIONS; i++)
		free(v->annotations[i]);
	free(v->containers);
	free(v->trouble);
	free(v);
}

const struct pod_container *pod_view_container(const struct pod_view *v, const char *name)
{
	for (size_t i = 0; i < v->container_count; i++)
		if (strcmp(v->containers[i].name, name) == 0)
			return &v->containers[i];
	return NULL;
}

const char *pod_view_text(const struct pod_view *v, enum pod_annotation which)
{
	return v->annotations[which] != NULL ? v->annotations[which] : "";
}

bool pod_view_is_bound_to(const struct pod_view *v, const char *node)
{
	return node[0] != '\0' && strcmp(v->node, node) == 0;
}
