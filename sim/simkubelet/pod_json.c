#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/check.h"
#include "core/num.h"
#include "kubelet/pb.h"
#include "sim/simkubelet/node.h"

enum { MAX_CONTAINERS = 64, MAX_DEVICES = 65536 };

static void make_uid(struct pod *p)
{
	uint8_t b[16];
	char text[37];

	CHECK(getrandom(b, sizeof b, 0) == (ssize_t)sizeof b);
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	p->uid = node_text(text);
}

/* Names go into file names and messages. */
static int read_name(const struct json_at *at, const char *key, const char *otherwise, char **out, struct hm_err *e)
{
	const char *name = otherwise;

	if (json_text(at, key, otherwise == NULL ? JSON_REQUIRED : JSON_OPTIONAL, &name, e) < 0)
		return -e->code;
	if (!pb_name_ok(name) || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")] != '\0')
		return json_err(at, key, e, "is no name of small letters, digits, '.' and '-'");
	*out = node_text(name);
	return 0;
}

/* Appends command, then args. */
static int read_words(const struct json_at *at, const char *key, char ***words, size_t *count, struct hm_err *e)
{
	struct json_at list;

	if (json_array(at, key, JSON_OPTIONAL, &list, e) < 0)
		return -e->code;
	for (size_t i = 0; i < json_count(&list); i++) {
		struct json_at item = json_item(&list, i);
		char **more = realloc(*words, (*count + 2) * sizeof *more);
		const char *text;

		CHECK(more != NULL);
		*words = more;
		more[*count] = NULL;
		if (json_text(&item, NULL, JSON_REQUIRED, &text, e) < 0)
			return -e->code;
		more[(*count)++] = node_text(text);
		more[*count] = NULL;
	}
	return 0;
}

static int read_env(const struct json_at *at, struct container *c, struct hm_err *e)
{
	struct json_at list;

	if (json_array(at, "env", JSON_OPTIONAL, &list, e) < 0)
		return -e->code;
	c->env = node_alloc(json_count(&list) + 1, sizeof *c->env);
	for (size_t i = 0; i < json_count(&list); i++) {
		struct json_at item = json_item(&list, i);
		const char *name, *value = "";
		struct str pair = { 0 };

		if (json_text(&item, "name", JSON_REQUIRED, &name, e) < 0 ||
		    json_text(&item, "value", JSON_OPTIONAL, &value, e) < 0)
			return -e->code;
		str_addf(&pair, "%s=", name);
		str_add(&pair, value);
		c->env[i] = str_take(&pair);
		CHECK(c->env[i] != NULL);
	}
	return 0;
}

/* A quantity that is a whole number, as text or number; kubectl sends text. */
static int read_quantity(const struct json_at *at, const char *key, uint64_t *out, struct hm_err *e)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(at->node, key);

	if (!cJSON_IsString(v))
		return json_u64(at, key, JSON_REQUIRED, 0, MAX_DEVICES, out, e);
	if (!num_u64_str(v->valuestring, MAX_DEVICES, out))
		return json_err(at, key, e, "\"%s\" is not a number between 0 and %d", v->valuestring, MAX_DEVICES);
	return 0;
}

static int read_limits(const struct json_at *at, struct container *c, struct hm_err *e)
{
	struct json_at resources, limits;
	const cJSON *it;

	if (json_object(at, "resources", JSON_OPTIONAL, &resources, e) < 0 ||
	    json_object(&resources, "limits", JSON_OPTIONAL, &limits, e) < 0)
		return -e->code;
	if (limits.node == NULL)
		return 0;
	c->grants = node_alloc((size_t)cJSON_GetArraySize(limits.node) + 1, sizeof *c->grants);
	cJSON_ArrayForEach(it, limits.node)
	{
		struct grant *g = &c->grants[c->grant_count];

		if (strchr(it->string, '/') == NULL)
			continue; /* cpu, memory: not held here */
		if (!pb_name_ok(it->string))
			return json_err(&limits, NULL, e, "a resource's name is not printable");
		if (read_quantity(&limits, it->string, &g->wanted, e) < 0)
			return -e->code;
		if (g->wanted == 0)
			continue;
		g->resource = node_text(it->string);
		c->grant_count++;
	}
	return 0;
}

static int read_user(const struct json_at *at, struct container *c, struct hm_err *e)
{
	struct json_at context;
	uint64_t user = UINT64_MAX, group = UINT64_MAX;

	if (json_object(at, "securityContext", JSON_OPTIONAL, &context, e) < 0)
		return -e->code;
	if (context.node == NULL)
		return 0;
	if (json_u64(&context, "runAsUser", JSON_OPTIONAL, 0, INT32_MAX, &user, e) < 0 ||
	    json_u64(&context, "runAsGroup", JSON_OPTIONAL, 0, INT32_MAX, &group, e) < 0)
		return -e->code;
	if (user != UINT64_MAX)
		c->run_as_user = (int64_t)user;
	if (group != UINT64_MAX)
		c->run_as_group = (int64_t)group;
	return 0;
}

static int read_container(const struct json_at *at, const struct json_at *spec, bool init, struct container *c,
			  struct hm_err *e)
{
	const char *restart = "";
	size_t words = 0;

	c->run_as_user = c->run_as_group = -1;
	c->init = init;
	if (read_name(at, "name", NULL, &c->name, e) < 0 || read_words(at, "command", &c->argv, &words, e) < 0 ||
	    read_words(at, "args", &c->argv, &words, e) < 0 || read_env(at, c, e) < 0 || read_limits(at, c, e) < 0 ||
	    read_user(spec, c, e) < 0 || read_user(at, c, e) < 0 ||
	    json_text(at, "restartPolicy", JSON_OPTIONAL, &restart, e) < 0)
		return -e->code;
	if (words == 0)
		return json_err(at, NULL, e, "container %s has no command (there are no images here)", c->name);
	if (restart[0] != '\0' && (!init || strcmp(restart, "Always") != 0))
		return json_err(at, "restartPolicy", e, "is only for init containers, and only \"Always\"");
	c->sidecar = restart[0] != '\0';
	return 0;
}

static int read_containers(const struct json_at *spec, struct pod *p, struct hm_err *e)
{
	struct json_at inits, mains;
	size_t total;

	if (json_array(spec, "initContainers", JSON_OPTIONAL, &inits, e) < 0 ||
	    json_array(spec, "containers", JSON_REQUIRED, &mains, e) < 0)
		return -e->code;
	total = json_count(&inits) + json_count(&mains);
	if (json_count(&mains) == 0 || total > MAX_CONTAINERS)
		return json_err(spec, "containers", e, "must be 1 to %d", MAX_CONTAINERS);
	p->containers = node_alloc(total, sizeof *p->containers);
	for (size_t i = 0; i < total; i++) {
		bool init = i < json_count(&inits);
		struct json_at at = init ? json_item(&inits, i) : json_item(&mains, i - json_count(&inits));

		p->container_count++;
		if (read_container(&at, spec, init, &p->containers[i], e) < 0)
			return -e->code;
	}
	return 0;
}

static int read_restart_policy(const struct json_at *spec, struct pod *p, struct hm_err *e)
{
	static const char *const names[] = { "Always", "OnFailure", "Never" };
	const char *text = "Always";

	if (json_text(spec, "restartPolicy", JSON_OPTIONAL, &text, e) < 0)
		return -e->code;
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			p->restart = (enum restart_policy)i;
			return 0;
		}
	}
	return json_err(spec, "restartPolicy", e, "\"%s\" is not Always, OnFailure or Never", text);
}

static int read_pod(const struct json_at *at, struct pod *p, struct hm_err *e)
{
	struct json_at metadata, spec;
	const char *uid = NULL;

	if (json_object(at, "metadata", JSON_REQUIRED, &metadata, e) < 0 ||
	    json_object(at, "spec", JSON_REQUIRED, &spec, e) < 0 ||
	    read_name(&metadata, "name", NULL, &p->name, e) < 0 ||
	    read_name(&metadata, "namespace", "default", &p->pod_namespace, e) < 0 ||
	    json_text(&metadata, "uid", JSON_OPTIONAL, &uid, e) < 0)
		return -e->code;
	if (uid == NULL)
		make_uid(p);
	else if (read_name(&metadata, "uid", NULL, &p->uid, e) < 0)
		return -e->code;
	if (read_restart_policy(&spec, p, e) < 0)
		return -e->code;
	return read_containers(&spec, p, e);
}

int pod_from_json(const struct json_at *at, struct pod **out, struct hm_err *e)
{
	hm_auto(pod) *p = node_alloc(1, sizeof *p);

	if (read_pod(at, p, e) < 0)
		return hm_err_wrap(e, "pod");
	*out = HM_STEAL(p);
	return 0;
}
