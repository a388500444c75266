/* Whether this process can see the node's containers in /proc at all. In a pod without hostPID it sees itself alone,
 * and "no process has this folder mounted" says nothing. */
#ifndef HM_AGENT_PROCESSES_SIGHT_H
#define HM_AGENT_PROCESSES_SIGHT_H

#include <stdbool.h>

/* True in the node's first pid namespace, where the kubelet that listens on the socket is visible (the kernel names its
 * pid in our namespace), or where a process of another pid namespace is. `proc` is /proc, another folder in tests. */
bool sight_of_node(const char *proc, const char *kubelet_socket);

#endif
