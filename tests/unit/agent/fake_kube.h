/* harness/fake_kube.h, and the agent's connection to it. CMakeLists.txt wraps these functions for the tests that
 * include this. */
#ifndef HM_TESTS_AGENT_FAKE_KUBE_H
#define HM_TESTS_AGENT_FAKE_KUBE_H

#include "agent/cluster/cluster.h"
#include "harness/fake_kube.h"

struct kube_client *__wrap_cluster_client(const struct cluster *c);
const char *__wrap_cluster_node(const struct cluster *c);

struct kube_client *__wrap_cluster_client(const struct cluster *c)
{
	(void)c;
	return (struct kube_client *)&fake_loop;
}

const char *__wrap_cluster_node(const struct cluster *c)
{
	(void)c;
	return "node-1";
}

#endif
