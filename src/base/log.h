/* Logs: one line each, "2026-11-29T20:20:54.123Z INFO  registered resource=hami.com/vgpu devices=8", to stderr. Values
 * are escaped, so hostile text stays on its line. Levels as klog users know them: log_v(n, ...) shows from --v=n on.
 *
 *     log_info("registered", KV("resource", name), KV_U64("devices", n));
 *     log_error("cannot register", KV_ERR(&e));
 */
#ifndef HM_BASE_LOG_H
#define HM_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log_kv {
	const char *key;
	enum { LOG_KV_END, LOG_KV_TEXT, LOG_KV_U64, LOG_KV_I64 } type;
	const char *text; /* NULL prints as "" */
	uint64_t number;
};

#define KV(k, v) ((struct log_kv) { (k), LOG_KV_TEXT, (v), 0 })
#define KV_U64(k, v) ((struct log_kv) { (k), LOG_KV_U64, NULL, (uint64_t)(v) })
#define KV_I64(k, v) ((struct log_kv) { (k), LOG_KV_I64, NULL, (uint64_t)(int64_t)(v) })
#define KV_ERR(e) KV("err", (e)->msg)

#define HM_LOG(level, ...) HM_LOG_(level, __VA_ARGS__, ((struct log_kv) { 0 }))
#define HM_LOG_(level, msg, ...)                                                                                       \
	do {                                                                                                           \
		if (log_enabled(level, 0))                                                                             \
			log_write(level, msg, (const struct log_kv[]) { __VA_ARGS__ });                                \
	} while (0)
#define log_error(...) HM_LOG(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) HM_LOG(LOG_WARN, __VA_ARGS__)
#define log_info(...) HM_LOG(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_v(4, __VA_ARGS__)
#define log_v(n, ...) HM_LOG_V_(n, __VA_ARGS__, ((struct log_kv) { 0 }))
#define HM_LOG_V_(n, msg, ...)                                                                                         \
	do {                                                                                                           \
		if (log_enabled(LOG_DEBUG, n))                                                                         \
			log_write(LOG_DEBUG, msg, (const struct log_kv[]) { __VA_ARGS__ });                            \
	} while (0)

/* The least level shown (default LOG_INFO) and klog's verbosity (default 0; 4 and above shows what DEBUG shows). */
void log_set_level(enum log_level level);
void log_set_verbosity(int v);
/* "DEBUG", "INFO", "WARN", "ERROR", in any case: sets the level (DEBUG: verbosity 4 where it is lower). */
int log_set_level_name(const char *name, struct hm_err *e) HM_MUST_USE;

/* Wall-clock milliseconds since 1970 for the time stamp; without one lines have none. io/loop.h's clock_wall_ms. */
void log_set_clock(uint64_t (*wall_ms)(void));
/* Where lines go instead of stderr (tests); NULL: stderr again. The line has no '\n'. */
void log_set_sink(void (*sink)(const char *line, size_t n, void *arg), void *arg);

bool log_enabled(enum log_level level, int v);
/* Ends at the first entry of type LOG_KV_END. */
void log_write(enum log_level level, const char *msg, const struct log_kv *kv);

#endif
