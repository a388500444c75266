#include "agent/hami/binding_choice.h"

#include <stdlib.h>
#include <string.h>

#include "agent/options/runtime.h"
#include "base/log.h"
#include "core/fmt.h"

struct binding_choice {
	struct binding_choice_config config;
	struct node_listener listener;
	struct runtime known;
	bool told; /* that late binding cannot work */
};

static bool choice_is_another(const struct agent_options *o, const struct runtime *now)
{
	return o->binding_is_auto && agent_binds_late(o) &&
	       (!runtime_does_cdi(now) || (runtime_wants_annotations(now) && !o->cdi_annotations));
}

static void tell_trouble(struct binding_choice *b, const struct runtime *now)
{
	const struct agent_options *o = b->config.options;

	if (o->binding_is_auto || !agent_binds_late(o) || runtime_does_cdi(now) || b->told)
		return;
	b->told = true;
	log_error("LATE BINDING NEEDS CDI, which this container runtime is not known to do by itself: containers may "
		  "start without their GPU. Switch CDI on in it, or use --binding=classic",
		  KV("runtime", now->container));
	cluster_tell_node(b->config.cluster, "Warning", "NoCDI",
			  "--binding=late needs CDI, which %s is not known to do by itself", now->container);
}

static void on_node(void *arg, const struct node_view *view)
{
	struct binding_choice *b = arg;
	struct runtime now;
	bool was_classic;
	struct hm_err e;

	if (view == NULL || view->container_runtime[0] == '\0')
		return;
	hm_fmt(now.kubelet, sizeof now.kubelet, "%s", view->kubelet_version);
	hm_fmt(now.container, sizeof now.container, "%s", view->container_runtime);
	if (runtime_equal(&now, &b->known))
		return;
	/* Without CDI the last time: whatever else made it classic will do so again. */
	was_classic = b->config.options->binding_is_auto && !runtime_does_cdi(&b->known);
	b->known = now;
	if (runtime_write(b->config.path, &now, &e) < 0)
		log_warn("the container runtime's version is not kept", KV_ERR(&e));
	tell_trouble(b, &now);
	if (choice_is_another(b->config.options, &now) || (was_classic && runtime_does_cdi(&now))) {
		log_info("--binding=auto: the node's container runtime decides anew", KV("runtime", now.container),
			 KV("kubelet", now.kubelet));
		b->config.other(b->config.arg);
	}
}

int binding_choice_new(const struct binding_choice_config *config, struct binding_choice **out, struct hm_err *e)
{
	struct binding_choice *b = calloc(1, sizeof *b);

	if (b == NULL)
		return hm_err_set(e, HM_ENOMEM, "choice of the binding");
	b->config = *config;
	runtime_read(config->path, &b->known);
	tell_trouble(b, &b->known);
	b->listener = (struct node_listener) { .changed = on_node, .arg = b };
	node_object_listen(config->node, &b->listener);
	*out = b;
	return 0;
}

void binding_choice_free(struct binding_choice *b)
{
	if (b == NULL)
		return;
	link_remove(&b->listener.link);
	free(b);
}
