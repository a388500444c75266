/* Keeps the plugin served and registered, whatever the kubelet does to its folder. Where the kubelet's socket is "" it
 * is served and never registered.
 *
 * 1. Wait for the folder, watch it, listen on our socket there.
 * 2. Register. A refused dial (kubelet.sock exists a moment before it accepts) is tried again after 5 ms.
 * 3. Our socket vanishes (a starting kubelet removes it): listen anew at once. kubelet.sock appears: register at once.
 *    Pods of a restarted kubelet are killed if that takes long (0.07 to 1 s).
 * 4. The kubelet drops our ListAndWatch stream and lives on, or another socket stands where ours was: somebody may have
 *    taken over the resource. Say so, register once more, and back off, louder, if it happens again. */
#ifndef HM_AGENT_SERVE_REGISTRAR_H
#define HM_AGENT_SERVE_REGISTRAR_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kubelet/device_plugin.h"

enum {
	REGISTRAR_FOLDER_MS = 25,         /* between looks for a folder that is not there */
	REGISTRAR_REFUSED_MS = 5,         /* between dials that are refused ... */
	REGISTRAR_REFUSED_FAST_MS = 3000, /* ... for so long, then */
	REGISTRAR_RETRY_MS = 500,
	REGISTRAR_STREAM_MS = 1000,   /* registered, but no ListAndWatch came */
	REGISTRAR_DROPPED_MS = 100,   /* from a dropped stream to the new registration: a restart shows itself first */
	REGISTRAR_CALM_MS = 60000,    /* a second loss within this is a take-over */
	REGISTRAR_BACKOFF_MS = 10000, /* then; doubled each time, up to */
	REGISTRAR_BACKOFF_MAX_MS = 300000,
};

struct registrar;

struct registrar_config {
	const struct agent_paths *paths; /* borrowed */
	const char *socket;              /* our socket's name in the plugin folder; borrowed */
	const char *resource;            /* borrowed */
	struct dp_handlers handlers;     /* `watchers` calls registrar_watchers */
	uint64_t started_ms;             /* loop time, to say how long the first registration took */
	/* A new server stands: give it its devices (dp_set_devices). */
	void (*served)(void *arg, struct dp_plugin *plugin);
	void (*registered)(void *arg); /* the kubelet took a registration; may be NULL */
	void *arg;
};

/* -HM_EINVAL where the socket's path is longer than one may be. */
int registrar_new(struct loop *l, const struct registrar_config *config, struct registrar **out,
		  struct hm_err *e) HM_MUST_USE;
void registrar_free(struct registrar *r);
HM_DEFINE_AUTO(registrar, registrar_free);

/* Nothing is registered before this: called once the devices are known. */
void registrar_start(struct registrar *r);

/* How many ListAndWatch streams are open. */
void registrar_watchers(struct registrar *r, size_t watchers);

struct dp_plugin *registrar_plugin(const struct registrar *r); /* NULL while none is served */
bool registrar_is_registered(const struct registrar *r);       /* or served, where there is no kubelet's socket */
const char *registrar_trouble(const struct registrar *r);      /* the last reason why not; "" if none */

#endif
