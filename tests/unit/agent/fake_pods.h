/* For tests over agent/cluster/pods.h: the pods that the watch tells, in few words (fake_kube.h's watch). */
#ifndef HM_TESTS_AGENT_FAKE_PODS_H
#define HM_TESTS_AGENT_FAKE_PODS_H

#include "agent/cluster/pods.h"
#include "base/str.h"
#include "fake_kube.h"

/* A pod of namespace "ns" with UID "uid-<name>" on node-1. `asks`: digits, devices of each container c0, c1, ...;
 * `phase`: of the pod; `marks`: annotations, as 'key':'value', or "": they win over those that are there anyway. */
static inline void tell_pod(const char *name, const char *asks, const char *phase, const char *allocated,
			    const char *marks)
{
	hm_auto_str text = { 0 };
	static unsigned version = 1;

	/* The first of a name counts. */
	str_addf(&text,
		 "{'metadata':{'name':'%s','namespace':'ns','uid':'uid-%s','resourceVersion':'%u','annotations':{%s%s"
		 "'hami.io/vgpu-node':'node-1','hami.io/vgpu-time':'1787293239'",
		 name, name, version++, marks, marks[0] != '\0' ? "," : "");
	if (allocated != NULL)
		str_addf(&text, ",'hami.io/vgpu-devices-allocated':'%s'", allocated);
	str_add(&text, "}},'spec':{'nodeName':'node-1','containers':[");
	for (size_t i = 0; asks[i] != '\0'; i++)
		str_addf(&text, "%s{'name':'c%zu','resources':{'limits':{'nvidia.com/gpu':'%c'}}}", i > 0 ? "," : "", i,
			 asks[i]);
	str_addf(&text, "]},'status':{'phase':'%s'}}", phase);
	fake_watch(str_text(&text), false);
}

#define TO_ALLOCATE(text) "'hami.io/vgpu-devices-to-allocate':'" text "'"
#define PHASE(word) "'hami.io/bind-phase':'" word "'"

static inline void tell_gone(const char *name)
{
	hm_auto_str text = { 0 };

	str_addf(&text, "{'metadata':{'name':'%s','namespace':'ns','uid':'uid-%s','resourceVersion':'9'}}", name, name);
	fake_watch(str_text(&text), true);
}

static inline struct pods *make_pods(void)
{
	struct pods *p = NULL;
	struct hm_err e;

	assert_int_equal(pods_new(NULL, "node-1", "nvidia.com/gpu", &p, &e), 0);
	return p;
}

#endif
