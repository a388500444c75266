#include "kube/binding.h"

#include "core/check.h"
#include "io/json_write.h"
#include "kube/url.h"

int kube_binding_text(const struct kube_binding *b, struct str *path, struct str *body, struct hm_err *e)
{
	str_clear(path);
	str_clear(body);
	kube_url_add_path(path, "/api/v1", b->name_space, "pods", b->pod);
	str_add(path, "/binding");
	str_add(body, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{");
	json_add_member(body, "name", b->pod);
	json_add_member(body, "uid", b->uid);
	str_add(body, ",\"annotations\":{");
	for (size_t i = 0; i < b->annotation_count; i++) {
		CHECK(b->annotations[i].value != NULL);
		if (!json_can_say(b->annotations[i].key) || !json_can_say(b->annotations[i].value))
			return hm_err_set(e, HM_EINVAL, "binding: %.100s: the value is not UTF-8",
					  b->annotations[i].key);
		json_add_member(body, b->annotations[i].key, b->annotations[i].value);
	}
	str_add(body, "}},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\"");
	json_add_member(body, "name", b->node);
	str_add(body, "}}");
	if (str_failed(path) || str_failed(body))
		return hm_err_set(e, HM_ENOMEM, "binding: out of memory");
	return 0;
}
