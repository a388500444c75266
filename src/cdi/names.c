#include "cdi/names.h"

#include <string.h>

#include "core/macros.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alnum(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9');
}

/* Letters, digits and `inside`, which may neither begin nor end it. */
static bool name_ok(const char *s, size_t n, const char *inside)
{
	if (n == 0 || !is_alnum(s[0]) || !is_alnum(s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_alnum(s[i]) && (s[i] == '\0' || strchr(inside, s[i]) == NULL))
			return false;
	}
	return true;
}

bool cdi_kind_ok(const char *kind)
{
	const char *slash = strchr(kind, '/');

	if (slash == NULL || !is_letter(kind[0]) || !is_letter(slash[1]))
		return false;
	return name_ok(kind, (size_t)(slash - kind), "_-.") && name_ok(slash + 1, strlen(slash + 1), "_-.");
}

bool cdi_device_name_ok(const char *name)
{
	return name_ok(name, strlen(name), "_-.:");
}

bool cdi_env_name_ok(const char *name)
{
	return name[0] != '\0' && strchr(name, '=') == NULL;
}

bool cdi_permissions_ok(const char *s)
{
	return s[strspn(s, "rwm")] == '\0';
}

bool cdi_hook_name_ok(const char *name)
{
	static const char *const known[] = { "prestart",       "createRuntime", "createContainer",
					     "startContainer", "poststart",     "poststop" };

	for (size_t i = 0; i < HM_COUNT(known); i++) {
		if (strcmp(name, known[i]) == 0)
			return true;
	}
	return false;
}
