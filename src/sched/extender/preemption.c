#include "sched/extender/preemption.h"

#include <stdlib.h>
#include <strings.h>

#include "io/json_write.h"

/* Of values in a request's tree: 100 nodes with 1,000 victims each are most of it. */
enum { MAX_VALUES = 1 << 18 };

/* The last of that name, in any case, as Go takes it; NULL for null. */
static const struct cJSON *member(const struct cJSON *object, const char *name)
{
	const struct cJSON *it, *found = NULL;

	if (!cJSON_IsObject(object)) /* a list's items have no names */
		return NULL;
	cJSON_ArrayForEach(it, object)
	{
		if (strcasecmp(it->string, name) == 0)
			found = it;
	}
	return found != NULL && !cJSON_IsNull(found) ? found : NULL;
}

static const char *uid_of(const struct cJSON *victim)
{
	const struct cJSON *meta = member(victim, "metadata"); /* a whole Pod */

	return cJSON_GetStringValue(member(meta != NULL ? meta : victim, "uid"));
}

static int read_node(const struct cJSON *from, struct preemption_node *to, const char **uids, size_t *at,
		     struct hm_err *e)
{
	const struct cJSON *pods = member(from, "pods"), *violations = member(from, "numpdbviolations"), *it;

	*to = (struct preemption_node) { .name = from->string, .victims = uids + *at };
	if (cJSON_IsNumber(violations) && violations->valuedouble >= 0 && violations->valuedouble < 1e15)
		to->pdb_violations = (int64_t)violations->valuedouble;
	cJSON_ArrayForEach(it, pods)
	{
		const char *uid = uid_of(it);

		if (uid == NULL)
			return hm_err_set(e, HM_EINVAL, "node %s: a victim without UID", to->name);
		uids[(*at)++] = uid;
		to->count++;
	}
	return 0;
}

static size_t count_victims(const struct cJSON *nodes)
{
	const struct cJSON *it;
	size_t n = 0;

	cJSON_ArrayForEach(it, nodes) n += (size_t)cJSON_GetArraySize(member(it, "pods"));
	return n;
}

int preemption_args_read(const char *body, size_t n, struct preemption_args *out, struct hm_err *e)
{
	const struct cJSON *nodes, *it;
	size_t at = 0;
	int err;

	*out = (struct preemption_args) { 0 };
	err = json_parse_within(body, n, MAX_VALUES, &out->tree, e);
	if (err < 0)
		return err;
	out->pod = member(out->tree, "pod");
	nodes = member(out->tree, "nodenametometavictims");
	if (nodes == NULL)
		nodes = member(out->tree, "nodenametovictims");
	if (!cJSON_IsObject(out->pod))
		return hm_err_set(e, HM_EINVAL, "extender args missing pod");
	if (nodes != NULL && !cJSON_IsObject(nodes))
		return hm_err_set(e, HM_EINVAL, "the victims are no map");
	out->nodes = calloc((size_t)cJSON_GetArraySize(nodes) + 1, sizeof *out->nodes);
	out->uids = calloc(count_victims(nodes) + 1, sizeof *out->uids);
	if (out->nodes == NULL || out->uids == NULL)
		return hm_err_set(e, HM_ENOMEM, "victims");
	cJSON_ArrayForEach(it, nodes)
	{
		if (read_node(it, &out->nodes[out->count], out->uids, &at, e) < 0)
			return -e->code;
		out->count++;
	}
	return 0;
}

void preemption_args_fini(struct preemption_args *a)
{
	json_free(HM_STEAL(a->tree));
	free(HM_STEAL(a->nodes));
	free(HM_STEAL(a->uids));
}

/* ---- the answer */

void preemption_answer_begin(struct preemption_answer *a, struct str *out)
{
	*a = (struct preemption_answer) { .out = out };
	str_add(out, "{\"NodeNameToMetaVictims\":{");
}

static void add_uids(struct str *out, const char *const *uids, size_t count, bool first)
{
	for (size_t i = 0; i < count; i++) {
		str_add(out, first && i == 0 ? "{\"UID\":" : ",{\"UID\":");
		json_add_text(out, uids[i]);
		str_addc(out, '}');
	}
}

void preemption_answer_add(struct preemption_answer *a, const struct preemption_node *n, const char *const *more,
			   size_t more_count)
{
	if (a->count++ > 0)
		str_addc(a->out, ',');
	json_add_text(a->out, n->name);
	str_add(a->out, ":{\"Pods\":[");
	add_uids(a->out, n->victims, n->count, true);
	add_uids(a->out, more, more_count, n->count == 0);
	str_addf(a->out, "],\"NumPDBViolations\":%lld}", (long long)n->pdb_violations);
}

void preemption_answer_end(struct preemption_answer *a)
{
	str_add(a->out, "}}");
}
