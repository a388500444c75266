/* Inside cdi/: the pieces of containerEdits. cdi_take_* move the value in; where memory is short it is freed and
 * -HM_ENOMEM returned. */
#ifndef HM_CDI_EDITS_H
#define HM_CDI_EDITS_H

#include "cdi/spec.h"

void cdi_env_fini(struct cdi_env *v);
void cdi_mount_fini(struct cdi_mount *m);
void cdi_node_fini(struct cdi_node *n);
void cdi_hook_fini(struct cdi_hook *h);

int cdi_take_env(struct cdi_edits *e, struct cdi_env v) HM_MUST_USE;
int cdi_take_mount(struct cdi_edits *e, struct cdi_mount m) HM_MUST_USE;
int cdi_take_node(struct cdi_edits *e, struct cdi_node n) HM_MUST_USE;
int cdi_take_hook(struct cdi_edits *e, struct cdi_hook h) HM_MUST_USE;

bool cdi_edits_empty(const struct cdi_edits *e);
/* A copy; NULL stays NULL. False where memory is short. */
bool cdi_copy_text(char **to, const char *from) HM_MUST_USE;

#endif
