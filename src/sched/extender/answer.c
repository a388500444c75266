#include "sched/extender/answer.h"

#include "io/json_write.h"

/* Members in Go's order; each part NULL for null. */
static void begin(struct str *out)
{
	str_addc(out, '{');
}

static void add_null(struct str *out, const char *name)
{
	json_add_name(out, name);
	str_add(out, "null");
}

static void end(struct str *out, const char *error)
{
	json_add_member(out, "Error", error);
	str_addc(out, '}');
}

static void add_map(struct str *out, const char *name, const struct extender_refusal *refusals, size_t count,
		    bool unresolvable)
{
	bool first = true;

	json_add_name(out, name);
	str_addc(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (refusals[i].unresolvable != unresolvable)
			continue;
		if (!first)
			str_addc(out, ',');
		first = false;
		json_add_text(out, refusals[i].node);
		str_addc(out, ':');
		json_add_text(out, refusals[i].reason);
	}
	str_addc(out, '}');
}

static void add_refusals(struct str *out, const struct extender_refusal *refusals, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count && !any; i++)
		any = refusals[i].unresolvable;
	add_map(out, "FailedNodes", refusals, count, false);
	if (any)
		add_map(out, "FailedAndUnresolvableNodes", refusals, count, true);
	else
		add_null(out, "FailedAndUnresolvableNodes");
}

void extender_add_names(struct str *out, const char *const *names, size_t count)
{
	begin(out);
	add_null(out, "Nodes");
	if (names == NULL) {
		add_null(out, "NodeNames");
	} else {
		json_add_name(out, "NodeNames");
		str_addc(out, '[');
		for (size_t i = 0; i < count; i++) {
			if (i > 0)
				str_addc(out, ',');
			json_add_text(out, names[i]);
		}
		str_addc(out, ']');
	}
	add_null(out, "FailedNodes");
	add_null(out, "FailedAndUnresolvableNodes");
	end(out, "");
}

void extender_add_refusals(struct str *out, const struct extender_refusal *refusals, size_t count)
{
	begin(out);
	add_null(out, "Nodes");
	add_null(out, "NodeNames");
	add_refusals(out, refusals, count);
	end(out, "");
}

void extender_add_nodes(struct str *out, const struct piece *nodes, size_t node_count,
			const struct extender_refusal *refusals, size_t count)
{
	begin(out);
	if (node_count == 0) {
		add_null(out, "Nodes");
	} else {
		json_add_name(out, "Nodes");
		str_add(out, "{\"metadata\":{},\"items\":[");
		for (size_t i = 0; i < node_count; i++) {
			if (i > 0)
				str_addc(out, ',');
			str_add_n(out, nodes[i].p, nodes[i].n);
		}
		str_add(out, "]}");
	}
	add_null(out, "NodeNames");
	add_refusals(out, refusals, count);
	end(out, "");
}

void extender_add_error(struct str *out, const char *text)
{
	begin(out);
	add_null(out, "Nodes");
	add_null(out, "NodeNames");
	add_null(out, "FailedNodes");
	add_null(out, "FailedAndUnresolvableNodes");
	end(out, text);
}

void extender_add_bound(struct str *out, const char *error)
{
	begin(out);
	end(out, error);
}
