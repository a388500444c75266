/* <state>/node for hami-smi: how the cards are cut (model/node_text.h). */
#ifndef HM_AGENT_CLAIMS_NODE_FILE_H
#define HM_AGENT_CLAIMS_NODE_FILE_H

#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "core/err.h"
#include "model/slots.h"

int node_file_write(const struct agent_paths *p, const struct agent_options *o, const struct slots *s,
		    struct hm_err *e) HM_MUST_USE;

#endif
