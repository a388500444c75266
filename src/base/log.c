#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/str.h"

static enum log_level shown = LOG_INFO;
static int verbosity;
static uint64_t (*clock_ms)(void);
static void (*sink_fn)(const char *, size_t, void *);
static void *sink_arg;

static const char *const level_names[] = { "ERROR", "WARN", "INFO", "DEBUG" };

void log_set_level(enum log_level level)
{
	shown = level;
}

void log_set_verbosity(int v)
{
	verbosity = v;
}

int log_set_level_name(const char *name, struct hm_err *e)
{
	for (size_t i = 0; i < HM_COUNT(level_names); i++) {
		if (strcasecmp(name, level_names[i]) != 0)
			continue;
		shown = (enum log_level)i;
		if (shown == LOG_DEBUG && verbosity < 4)
			verbosity = 4;
		return 0;
	}
	return hm_err_set(e, HM_EINVAL, "log level: \"%s\" is none of DEBUG, INFO, WARN, ERROR", name);
}

void log_set_clock(uint64_t (*wall_ms)(void))
{
	clock_ms = wall_ms;
}

void log_set_sink(void (*sink)(const char *, size_t, void *), void *arg)
{
	sink_fn = sink;
	sink_arg = arg;
}

bool log_enabled(enum log_level level, int v)
{
	return level == LOG_DEBUG ? v <= verbosity && shown >= LOG_INFO : level <= shown;
}

static bool is_plain(const char *text)
{
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++)
		if (*text <= 0x20 || *text >= 0x7f || strchr("\"\\=", *text) != NULL)
			return false;
	return true;
}

static void add_value(struct str *s, const char *text)
{
	if (text == NULL)
		text = "";
	if (is_plain(text)) {
		str_add(s, text);
		return;
	}
	str_addc(s, '"');
	str_add_escaped(s, text, strlen(text));
	str_addc(s, '"');
}

static void write_all(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(STDERR_FILENO, p, n);
		if (w <= 0)
			return;
		p += w;
		n -= (size_t)w;
	}
}

void log_write(enum log_level level, const char *msg, const struct log_kv *kv)
{
	hm_auto_str s = { 0 };

	if (clock_ms != NULL) {
		uint64_t ms = clock_ms();

		str_add_utc(&s, ms);
		str_addf(&s, ".%03lluZ ", (unsigned long long)(ms % 1000));
	}
	str_addf(&s, "%-5s ", level_names[level]);
	str_add_escaped(&s, msg, strlen(msg));
	for (; kv->type != LOG_KV_END; kv++) {
		str_addf(&s, " %s=", kv->key);
		if (kv->type == LOG_KV_TEXT)
			add_value(&s, kv->text);
		else if (kv->type == LOG_KV_U64)
			str_addf(&s, "%llu", (unsigned long long)kv->number);
		else
			str_addf(&s, "%lld", (long long)(int64_t)kv->number);
	}
	if (sink_fn != NULL) {
		sink_fn(str_text(&s), s.n, sink_arg);
		return;
	}
	str_addc(&s, '\n');
	if (str_failed(&s))
		write_all("ERROR out of memory while writing a log line\n", 45);
	else
		write_all(s.p, s.n);
}
