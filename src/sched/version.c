#include "sched/version.h"

#include "core/macros.h"
#include "io/json_write.h"

static const struct {
	const char *line, *member, *value;
} parts[] = {
	{ "version", "version", HM_VERSION },    { "revision", "revision", "" },
	{ "build date", "buildDate", "" },       { "go version", "goVersion", "" },
	{ "compiler", "compiler", HM_COMPILER }, { "platform", "platform", HM_PLATFORM },
};

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
