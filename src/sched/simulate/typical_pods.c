#include "sched/simulate/typical_pods.h"

#include "base/log.h"
#include "base/str.h"
#include "io/file.h"
#include "io/json.h"
#include "sched/simulate/objects.h"
#include "sched/simulate/trace.h"
#include "sched/view/pod_read.h"

enum { MAX_FILE_BYTES = 1 << 30, MILLI_A_PERCENT = CARD_MILLI / 100 };

struct typical {
	struct pod_mix *mix;
	uint64_t taken, left_out, unread;
};

static int add(struct typical *t, const struct mix_shape *s, struct hm_err *e)
{
	int rc = pod_mix_add(t->mix, s, 1, e);

	t->taken += rc == 0;
	t->left_out += rc == -HM_ELIMIT;
	return rc == -HM_ELIMIT ? 0 : rc;
}

static int add_json_pod(struct typical *t, const struct cJSON *json, const struct pod_rules *rules, struct hm_err *e)
{
	hm_auto_pod_ask ask = { 0 };
	struct mix_shape s;
	int rc = pod_read_ask(json, rules, &ask, e);

	if (rc < 0 && rc != -HM_ENOMEM) {
		t->unread++;
		return 0;
	}
	if (rc < 0 || !pod_ask_any(&ask))
		return rc;
	s = mix_shape_of(&ask);
	return add(t, &s, e);
}

static int add_json(struct typical *t, const struct str *text, const struct pod_rules *rules, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	int rc = json_parse(str_text(text), text->n, &tree, e);

	if (rc < 0)
		return rc;
	for (const struct cJSON *pod = objects_first(tree); pod != NULL && rc == 0; pod = objects_next(tree, pod))
		rc = add_json_pod(t, pod, rules, e);
	return rc;
}

/* A trace counts in milli of cards that all are alike; a percentage is the same of any card. */
static int add_csv(struct typical *t, const struct str *text, struct hm_err *e)
{
	hm_auto_trace trace = { 0 };
	int rc = trace_read_pods(&trace, str_text(text), text->n, e);

	for (size_t i = 0; i < trace.pod_count && rc == 0; i++) {
		struct mix_shape s = mix_shape_of(&trace.pods[i].ask);

		if (s.cards == 0)
			continue;
		s.each.percent = (uint32_t)(s.each.memory_mib + MILLI_A_PERCENT - 1) / MILLI_A_PERCENT;
		s.each.memory_mib = 0;
		rc = add(t, &s, e);
	}
	return rc;
}

int typical_pods_read(const char *path, const struct device_config *device, struct pod_mix *mix, struct hm_err *e)
{
	const struct pod_rules rules = pod_rules_of(device);
	struct typical t = { .mix = mix };
	hm_auto_str text = { 0 };
	int rc = file_read(path, MAX_FILE_BYTES, &text, e);

	if (rc < 0)
		return rc;
	rc = json_begins_object(str_text(&text), text.n) ? add_json(&t, &text, &rules, e) : add_csv(&t, &text, e);
	if (rc == 0 && t.taken == 0)
		rc = hm_err_set(e, HM_EINVAL, "no pod in it asks for a card");
	if (rc < 0)
		return hm_err_wrap(e, "%s", path);
	if (t.left_out + t.unread > 0)
		log_warn("not all of the typical pods are taken", KV("file", path), KV_U64("taken", t.taken),
			 KV_U64("of_too_many_shapes", t.left_out), KV_U64("unread", t.unread));
	log_info("typical pods are given", KV("file", path), KV_U64("pods", t.taken), KV_U64("shapes", mix->count));
	return 0;
}
