/* JSON texts for bodies that we write. */
#ifndef HM_KUBE_JSON_TEXT_H
#define HM_KUBE_JSON_TEXT_H

#include <stdbool.h>

#include "base/str.h"

/* Well-formed UTF-8, without surrogates and overlong forms: what a JSON text can hold. */
bool kube_json_can_say(const char *text);

/* The text in quotes, escaped. Bytes that are not UTF-8 become U+FFFD each. */
void kube_json_add_text(struct str *out, const char *text);

#endif
