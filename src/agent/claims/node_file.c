#include "agent/claims/node_file.h"

#include <unistd.h>

#include "base/str.h"
#include "io/file.h"
#include "model/node_text.h"

int node_file_write(const struct agent_paths *p, const struct agent_options *o, const struct slots *s, struct hm_err *e)
{
	const struct slots_config config = agent_slots_config(o);
	hm_auto_str text = { 0 };
	struct node_text node;

	node_text_from_slots(s, &config, &node);
	node.binding = agent_binds_late(o) ? NODE_BINDING_LATE : NODE_BINDING_CLASSIC;
	node.pid = (uint64_t)getpid();
	node_text_write(&node, &text);
	if (str_failed(&text))
		return hm_err_set(e, HM_ENOMEM, "write %s", p->node.s);
	return file_swap(p->node.s, text.p, text.n, 0644, e);
}
