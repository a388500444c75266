#include "kube/url.h"

#include <string.h>

static bool unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~", c) != NULL);
}

void kube_url_add(struct str *out, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	bool dots = strcmp(text, ".") == 0 || strcmp(text, "..") == 0;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (unreserved(*text) && !dots) {
			str_addc(out, *text);
		} else {
			str_addc(out, '%');
			str_addc(out, hex[c >> 4]);
			str_addc(out, hex[c & 15]);
		}
	}
}

void kube_url_add_query(struct str *out, const char *key, const char *value)
{
	str_addc(out, strchr(str_text(out), '?') != NULL ? '&' : '?');
	str_add(out, key);
	str_addc(out, '=');
	kube_url_add(out, value);
}

void kube_url_add_path(struct str *out, const char *prefix, const char *name_space, const char *plural,
		       const char *name)
{
	str_add(out, prefix);
	if (name_space != NULL) {
		str_add(out, "/namespaces/");
		kube_url_add(out, name_space);
	}
	str_addc(out, '/');
	str_add(out, plural);
	if (name != NULL) {
		str_addc(out, '/');
		kube_url_add(out, name);
	}
}
