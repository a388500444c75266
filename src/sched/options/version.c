#include "sched/options/version.h"

#include "core/macros.h"
#include "io/json_write.h"

static const struct {
	const char *line, *member, *value;
} parts[VERSION_PARTS] = {
	[VERSION_VERSION] = { "version", "version", HM_VERSION },
	[VERSION_REVISION] = { "revision", "revision", "" },
	[VERSION_BUILD_DATE] = { "build date", "buildDate", "" },
	[VERSION_GO] = { "go version", "goVersion", "" },
	[VERSION_COMPILER] = { "compiler", "compiler", HM_COMPILER },
	[VERSION_PLATFORM] = { "platform", "platform", HM_PLATFORM },
};

const char *version_of(enum version_part part)
{
	return parts[part].value;
}

void version_add_lines(struct str *out)
{
	for (size_t i = 0; i < HM_COUNT(parts); i++)
		str_addf(out, "%s: %s\n", parts[i].line, parts[i].value);
}

void version_add_json(struct str *out)
{
	str_addc(out, '{');
	for (size_t i = 0; i < HM_COUNT(parts); i++)
		json_add_member(out, parts[i].member, parts[i].value);
	str_add(out, "}\n");
}
