/* Whatever is taken as a pod has all that hami-simkubelet's other parts rely on. */
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "fuzz/fuzz.h"
#include "kubelet/pb.h"
#include "sim/simkubelet/node.h"

static void check_container(const struct container *c)
{
	CHECK(pb_name_ok(c->name) && strchr(c->name, '/') == NULL);
	CHECK(c->argv != NULL && c->argv[0] != NULL && c->env != NULL);
	for (size_t i = 0; c->env[i] != NULL; i++)
		CHECK(strchr(c->env[i], '=') != NULL);
	for (size_t i = 0; i < c->grant_count; i++)
		CHECK(pb_name_ok(c->grants[i].resource) && c->grants[i].wanted > 0);
	CHECK(c->run_as_user >= -1 && c->run_as_group >= -1);
	CHECK(!c->sidecar || c->init);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto(pod) *p = NULL;
	struct hm_err e = { 0 };
	struct json_at root;

	if (json_parse((const char *)data, n, &tree, &e) < 0)
		return 0;
	root = json_root(tree);
	if (pod_from_json(&root, &p, &e) < 0) {
		CHECK(p == NULL && e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	CHECK(pb_name_ok(p->name) && pb_name_ok(p->pod_namespace) && pb_name_ok(p->uid));
	CHECK(p->container_count > 0 && p->restart <= RESTART_NEVER);
	for (size_t i = 0; i < p->container_count; i++)
		check_container(&p->containers[i]);
	CHECK(!p->containers[p->container_count - 1].init);
	return 0;
}
