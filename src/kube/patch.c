#include "kube/patch.h"

#include "io/json_write.h"

static void add_values(struct str *out, const char *name, const struct kube_patch_value *values, size_t count)
{
	if (count == 0)
		return;
	json_add_name(out, name);
	str_addc(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (values[i].value != NULL) {
			json_add_member(out, values[i].key, values[i].value);
		} else {
			json_add_name(out, values[i].key);
			str_add(out, "null");
		}
	}
	str_addc(out, '}');
}

static int check(const struct kube_patch_value *values, size_t count, struct hm_err *e)
{
	for (size_t i = 0; i < count; i++) {
		if (!json_can_say(values[i].key) || (values[i].value != NULL && !json_can_say(values[i].value)))
			return hm_err_set(e, HM_EINVAL, "patch of %.100s: the value is not UTF-8", values[i].key);
	}
	return 0;
}

int kube_patch_text(const struct kube_patch *p, char **out, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (check(p->annotations, p->annotation_count, e) < 0 || check(p->labels, p->label_count, e) < 0)
		return -e->code;
	str_add(&text, "{\"metadata\":{");
	json_add_member(&text, "uid", p->uid);
	json_add_member(&text, "resourceVersion", p->resource_version);
	add_values(&text, "annotations", p->annotations, p->annotation_count);
	add_values(&text, "labels", p->labels, p->label_count);
	str_add(&text, "}}");
	*out = str_take(&text);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "patch: out of memory");
}
