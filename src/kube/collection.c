#include "kube/collection.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "kube/url.h"

static bool copy(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

bool kube_collection_init(struct kube_collection *c, const char *path, const char *field_selector,
			  const char *label_selector)
{
	*c = (struct kube_collection) { 0 };
	return copy(path, &c->path) && copy(field_selector, &c->field_selector) &&
	       copy(label_selector, &c->label_selector);
}

void kube_collection_fini(struct kube_collection *c)
{
	free(c->path);
	free(c->field_selector);
	free(c->label_selector);
}

static void add_number(struct str *url, const char *key, unsigned n)
{
	char text[24];

	hm_fmt(text, sizeof text, "%u", n);
	kube_url_add_query(url, key, text);
}

static void add_selectors(const struct kube_collection *c, struct str *url)
{
	if (c->field_selector != NULL)
		kube_url_add_query(url, "fieldSelector", c->field_selector);
	if (c->label_selector != NULL)
		kube_url_add_query(url, "labelSelector", c->label_selector);
}

void kube_collection_add_list(const struct kube_collection *c, const char *version, unsigned limit, const char *token,
			      struct str *url)
{
	str_add(url, c->path);
	if (version != NULL)
		kube_url_add_query(url, "resourceVersion", version[0] != '\0' ? version : "0");
	else
		add_number(url, "limit", limit);
	add_selectors(c, url);
	if (token != NULL)
		kube_url_add_query(url, "continue", token);
}

void kube_collection_add_watch(const struct kube_collection *c, const char *version, uint32_t seconds, struct str *url)
{
	str_add(url, c->path);
	kube_url_add_query(url, "watch", "1");
	kube_url_add_query(url, "allowWatchBookmarks", "true");
	add_number(url, "timeoutSeconds", seconds);
	kube_url_add_query(url, "resourceVersion", version);
	add_selectors(c, url);
}
