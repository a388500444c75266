#include "agent/container/binding.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/container/container_dir.h"

void binding_answer_fini(struct binding_answer *a)
{
	cdi_edits_fini(&a->edits);
	free(a->envs);
	free(a->mounts);
	free(a->nodes);
	free(a->annotation_value);
	*a = (struct binding_answer) { 0 };
}

const struct binding *binding_of(const struct claim *c)
{
	return c->cdi[0] != '\0' ? &binding_late : &binding_classic;
}

int binding_remove(const struct agent_paths *paths, struct claims *claims, uint64_t number, struct hm_err *e)
{
	struct agent_path spec = agent_path_spec(paths, number);

	if (unlink(spec.s) < 0 && errno != ENOENT)
		return hm_err_errno(e, errno, "remove %s", spec.s);
	if (container_dir_remove(paths, number, e) < 0)
		return -e->code;
	return claims_remove(claims, number, e);
}
