/* JSON trees (cJSON's), and typed reads whose errors name the place: "line 7: cards[2].memory_mib: "ten" is not a
 * number between 1 and 1000". The same reads serve YAML (io/yaml.h), whose trees know their lines. */
#ifndef HM_IO_JSON_H
#define HM_IO_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"

static inline void json_free(struct cJSON *tree)
{
	cJSON_Delete(tree);
}
/* hm_auto(cJSON) *tree = NULL; */
HM_DEFINE_AUTO(cJSON, json_free);

/* One value with nothing but white space around it. -HM_EPROTO names line and column, -HM_ENOMEM. */
int json_parse(const char *text, size_t n, struct cJSON **out, struct hm_err *e) HM_MUST_USE;

/* The same of what a stranger wrote: a tree of "[],[],..." takes 20 times the memory of its text. -HM_ELIMIT where
 * there may be more values in it than max_values, members' and items' counted; commas and brackets within texts do not
 * count.
 */
int json_parse_within(const char *text, size_t n, size_t max_values, struct cJSON **out, struct hm_err *e) HM_MUST_USE;

/* Empties, in place, each array that is a member of this name, wherever it stands: for what is large, or nested more
 * deeply than json_parse reads (1,000), and looked at by nobody. The text is JSON, and keeps its length. */
void json_empty_arrays(char *text, size_t n, const char *name);

/* Is the first thing in the text '{'? For files that may be of another format, too. */
bool json_begins_object(const char *text, size_t n);

/* A place in a tree: a value and how it was reached, for messages. Borrows the tree and its parent place, which must
 * not move. `node` is NULL where an optional value is absent. */
struct json_at {
	const struct cJSON *node;
	const struct json_at *parent;
	const char *key; /* NULL in an array */
	size_t index;
	bool lines; /* the tree came from yaml_parse */
};

struct json_at json_root(const struct cJSON *tree);
struct json_at yaml_root(const struct cJSON *tree);

enum json_need { JSON_OPTIONAL, JSON_REQUIRED };

/* All: -HM_EINVAL with the place in the message where the value is of another kind or out of range, or required and
 * absent (null counts as absent). An absent optional value leaves *out as it is (json_object, json_array: node NULL).
 * `at` must be an object, or NULL inside, which has no members. */
int json_text(const struct json_at *at, const char *key, enum json_need need, const char **out,
	      struct hm_err *e) HM_MUST_USE; /* borrowed from the tree */
int json_copy(const struct json_at *at, const char *key, enum json_need need, char *out, size_t cap,
	      struct hm_err *e) HM_MUST_USE; /* too long is an error */
int json_u64(const struct json_at *at, const char *key, enum json_need need, uint64_t min, uint64_t max, uint64_t *out,
	     struct hm_err *e) HM_MUST_USE; /* whole numbers up to 2^53, what a double holds */
int json_f64(const struct json_at *at, const char *key, enum json_need need, double min, double max, double *out,
	     struct hm_err *e) HM_MUST_USE;
int json_bool(const struct json_at *at, const char *key, enum json_need need, bool *out, struct hm_err *e) HM_MUST_USE;
int json_object(const struct json_at *at, const char *key, enum json_need need, struct json_at *out,
		struct hm_err *e) HM_MUST_USE;
int json_array(const struct json_at *at, const char *key, enum json_need need, struct json_at *out,
	       struct hm_err *e) HM_MUST_USE;

/* Elements of an array (0 for NULL); json_item's index must be below. An item is read by the calls above with key NULL:
 * json_u64(&item, NULL, JSON_REQUIRED, ...) reads the item itself. */
size_t json_count(const struct json_at *array);
struct json_at json_item(const struct json_at *array, size_t index);

/* Only these members may be there: an unknown key is -HM_EINVAL, which catches misspelt ones. */
int json_known(const struct json_at *at, const char *const keys[], size_t count, struct hm_err *e) HM_MUST_USE;

/* An error at this place, for checks of one's own: "<line and path>: <fmt>". */
int json_err(const struct json_at *at, const char *key, struct hm_err *e, const char *fmt, ...) HM_PRINTF(4, 5);

#endif
