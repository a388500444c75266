/* hami-simkubelet: a stand-in for kubelet and container runtime. It speaks the kubelet's gRPC with device plugins in
 * the real one's order (tests/e2e/golden), keeps a checkpoint, and starts each container in namespaces of its own.
 *
 *     plugins.c     Registration, ListAndWatch: which resources there are, and their devices
 *     admission.c   one pod at a time: GetPreferredAllocation, Allocate, checkpoint
 *     pods.c        life of a pod: order of its containers, PreStartContainer, restarts
 *     container.c   a container: CDI specs applied, jail started, its end noticed
 *     jail.c        in the child: namespaces, its root, mounts
 *     podres.c      pod-resources List
 *     control.c     JSON lines on a socket; client.c: the commands that use it
 *
 * A tool for tests: where memory is short it stops (node_alloc). */
#ifndef HM_SIMKUBELET_NODE_H
#define HM_SIMKUBELET_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cdi/spec.h"
#include "core/err.h"
#include "core/link.h"
#include "io/json.h"
#include "io/loop.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "sim/simkubelet/ids.h"

struct device {
	char *id;
	bool healthy;
	int64_t numa; /* -1: none told */
};

/* What a plugin registered. Stays known after the plugin went (capacity stays, allocatable is 0), until the kubelet
 * restarts. */
struct plugin {
	struct link link; /* node.plugins */
	struct node *node;
	char *resource, *endpoint;
	struct rpc_client *client;    /* NULL: stopped */
	struct rpc_call *registering; /* Register to be answered when the plugin told its options */
	struct loop_timer *redial;
	uint64_t dial_until_ms;
	bool wants_preferred, wants_pre_start, told_devices;
	struct device *devices;
	size_t device_count;
};

/* Devices of one resource that a container holds. */
struct grant {
	char *resource;
	uint64_t wanted;
	struct ids ids;        /* empty until allocated */
	bool allocated;        /* Allocate was answered */
	struct str answer;     /* ContainerAllocateResponse, packed */
	struct str device_ids; /* JSON of the checkpoint's DeviceIDs: by NUMA node, as they were when allocated */
};

enum container_state {
	CONTAINER_WAITING,  /* to be started when its turn comes */
	CONTAINER_STARTING, /* PreStartContainer has not answered */
	CONTAINER_BACKOFF,  /* a timer will make it WAITING */
	CONTAINER_RUNNING,
	CONTAINER_EXITED,
};

struct container {
	struct pod *pod;
	char *name;
	char **argv, **env;                /* NULL-terminated; env "NAME=VALUE" */
	int64_t run_as_user, run_as_group; /* -1: as the node */
	bool init, sidecar;                /* a sidecar is an init container too */
	struct grant *grants;
	size_t grant_count;
	enum container_state state;
	size_t pre_started; /* grants whose PreStartContainer answered */
	struct rpc_request *pre_start;
	struct loop_timer *retry;
	unsigned start_failures, starts;
	pid_t pid; /* host pid of its pid namespace's init; 0: none */
	int exit_code;
	char *log, *message;
};

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };
enum restart_policy { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };

struct pod {
	struct link link; /* node.pods, in order of arrival */
	struct node *node;
	char *uid, *name, *pod_namespace;
	enum restart_policy restart;
	enum pod_phase phase;
	bool admitted, started; /* by the scheduler's choice; all its Allocates answered */
	bool finishing;         /* its main containers ended */
	bool deleted;           /* only the checkpoint still knows it, until the next allocation */
	char *reason, *message;
	struct container *containers; /* init containers first */
	size_t container_count;
};

struct node {
	struct loop *loop;
	/* options */
	const char *dir, *cdi_dirs, *binds, *leave_out;
	uint64_t retry_ms, pre_start_ms, restart_ms, readmit_ms, dial_ms;
	/* kubelet */
	bool kubelet_up, readmitting;
	uint64_t gap_ms; /* between kubelet.sock's making and its listening, at the next start */
	uint64_t list_tokens, list_at_ms;
	struct rpc_server *registration, *pod_resources;
	struct loop_timer *start, *listen, *readmit, *sync;
	struct link plugins, pods;
	struct admission *admission;
	struct control *control;
	struct loop_signal *child, *term, *interrupt;
	bool user_namespace;
};

void *node_alloc(size_t n, size_t size);
char *node_text(const char *s); /* a copy; NULL stays NULL */
/* Its sockets stay, nobody listens on them; containers go on. */
void node_kubelet_stop(struct node *n);
void node_kubelet_start(struct node *n, uint64_t after_ms, uint64_t gap_ms);
/* Soon, from the loop: admission of pending pods, and every pod's next step. */
void node_sync(struct node *n);

/* plugins.c */
int plugins_listen(struct node *n, struct hm_err *e) HM_MUST_USE;
void plugins_stop_kubelet(struct node *n); /* connections end, nothing is known any more; sockets stay */
struct plugin *plugins_find(const struct node *n, const char *resource);
size_t plugin_healthy(const struct plugin *p);
const struct device *plugin_device(const struct plugin *p, const char *id);

/* admission.c */
struct admission *admission_new(struct node *n);
void admission_free(struct admission *a);
void admission_step(struct node *n); /* the next pending pod that fits, unless one is being admitted */
void admission_forget(struct node *n, const struct pod *p);
void admission_abort(struct node *n); /* the kubelet ends: the pod in hand will be admitted anew */
/* checkpoint.c */
int checkpoint_save(const struct node *n, struct hm_err *e) HM_MUST_USE;
/* The grant's ids by NUMA node, from what the plugin says of its devices now. */
void checkpoint_note_devices(struct grant *g, const struct plugin *p);

/* pod_json.c: the parts of a Kubernetes Pod that matter here. */
int pod_from_json(const struct json_at *at, struct pod **out, struct hm_err *e) HM_MUST_USE;

/* pods.c */
void pod_adopt(struct node *n, struct pod *p); /* a parsed one; the node owns it from here on */
void pod_free(struct pod *p);
HM_DEFINE_AUTO(pod, pod_free);
struct pod *pods_find(const struct node *n, const char *pod_namespace, const char *name);
void pod_admitted(struct pod *p);
void pod_reject(struct pod *p, const char *reason, const char *message);
void pod_step(struct pod *p);
void pod_delete(struct pod *p);
void pods_pause(struct node *n);   /* the kubelet ends: starts in hand are given up */
void pods_readmit(struct node *n); /* after a kubelet's restart */
void pod_container_exited(struct container *c, int code);
const char *pod_phase_name(enum pod_phase phase);
const char *container_state_name(enum container_state state);

/* container.c */
/* Applies what the plugins answered and starts it; the error is what the kubelet's event would say. */
int container_start(struct container *c, struct hm_err *e) HM_MUST_USE;
const char *status_words(int status); /* "Internal": as grpc-go prints a code */
void container_reap(struct node *n);
void container_kill(struct container *c, int signo); /* its first process; nothing where there is none */
void container_end(struct container *c);             /* kills and waits */

/* podres.c */
int podres_listen(struct node *n, struct hm_err *e) HM_MUST_USE;

/* control.c */
int control_new(struct node *n, struct hm_err *e) HM_MUST_USE;
void control_free(struct control *c);
/* {"event":NAME,...} to those who wait for this pod; takes `more`, an object or NULL. */
void control_event(struct pod *p, const char *event, struct cJSON *more);
void control_pod_changed(struct pod *p);
void control_resources_changed(struct node *n);

#endif
