#include "kube/patch.h"

#include <string.h>

#include "kube/json_text.h"

static void add_values(struct str *out, const char *key, const struct kube_patch_value *values, size_t count,
		       const char *comma)
{
	if (count == 0)
		return;
	str_add(out, comma);
	kube_json_add_text(out, key);
	str_add(out, ":{");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			str_addc(out, ',');
		kube_json_add_text(out, values[i].key);
		str_addc(out, ':');
		if (values[i].value == NULL)
			str_add(out, "null");
		else
			kube_json_add_text(out, values[i].value);
	}
	str_addc(out, '}');
}

static int check(const struct kube_patch_value *values, size_t count, struct hm_err *e)
{
	for (size_t i = 0; i < count; i++) {
		if (!kube_json_can_say(values[i].key) ||
		    (values[i].value != NULL && !kube_json_can_say(values[i].value)))
			return hm_err_set(e, HM_EINVAL, "patch of %.100s: the value is not UTF-8", values[i].key);
	}
	return 0;
}

int kube_patch_text(const struct kube_patch *p, char **out, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	const char *comma = "";
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (check(p->annotations, p->annotation_count, e) < 0 || check(p->labels, p->label_count, e) < 0)
		return -e->code;
	str_add(&text, "{\"metadata\":{");
	if (p->uid != NULL) {
		str_add(&text, "\"uid\":");
		kube_json_add_text(&text, p->uid);
		comma = ",";
	}
	if (p->resource_version != NULL) {
		str_addf(&text, "%s\"resourceVersion\":", comma);
		kube_json_add_text(&text, p->resource_version);
		comma = ",";
	}
	add_values(&text, "annotations", p->annotations, p->annotation_count, comma);
	add_values(&text, "labels", p->labels, p->label_count, p->annotation_count > 0 ? "," : comma);
	str_add(&text, "}}");
	*out = str_take(&text);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "patch: out of memory");
}
