#include "smi/report.h"

#include <stdio.h>
#include <string.h>

enum { KEY_WIDTH = 40, INDENT = 4 };

static void add_key(struct str *out, unsigned depth, const char *key)
{
	for (unsigned i = 0; i < depth * INDENT; i++)
		str_addc(out, ' ');
	str_add(out, key);
}

static void add_value(const struct cJSON *node, struct str *out)
{
	char number[32];

	if (cJSON_IsNumber(node)) {
		snprintf(number, sizeof number, "%.0f", node->valuedouble); /* all of ours are whole */
		str_add(out, number);
	} else if (cJSON_IsString(node)) {
		str_add_escaped(out, node->valuestring, strlen(node->valuestring));
	} else if (cJSON_IsBool(node)) {
		str_add(out, cJSON_IsTrue(node) ? "yes" : "no");
	} else {
		str_add(out, "N/A");
	}
}

/* The tree is ours and five levels deep: recursion is bounded. */
static void add_node(const struct cJSON *node, const char *key, unsigned depth, struct str *out)
{
	const struct cJSON *child = NULL;
	char name[64];
	unsigned index = 0;

	if (!cJSON_IsObject(node) && !cJSON_IsArray(node)) {
		add_key(out, depth, key);
		for (size_t n = depth * INDENT + strlen(key); n < KEY_WIDTH; n++)
			str_addc(out, ' ');
		str_add(out, " : ");
		add_value(node, out);
		str_addc(out, '\n');
		return;
	}
	if (cJSON_IsArray(node)) {
		cJSON_ArrayForEach(child, node)
		{
			snprintf(name, sizeof name, "%s[%u]", key, index++);
			add_node(child, name, depth, out);
		}
		return;
	}
	add_key(out, depth, key);
	str_addc(out, '\n');
	cJSON_ArrayForEach(child, node) add_node(child, child->string, depth + 1, out);
}

void report_query(const struct cJSON *tree, struct str *out)
{
	const struct cJSON *child = NULL;

	cJSON_ArrayForEach(child, tree) add_node(child, child->string, 0, out);
}
