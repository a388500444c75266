#include "agent/serve/container_start.h"

#include <string.h>

#include "agent/claims/prestart.h"
#include "agent/processes/holders.h"
#include "agent/processes/sight.h"
#include "base/log.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "kubelet/checkpoint.h"

/* /proc is looked through only if a claim of another pod shares a slot. */
struct lazy_holders {
	const struct container_start_tools *tools;
	struct holders *seen;
	const struct claim *unseen[PRESTART_MAX_TARGETS]; /* nothing tells whether they live */
	size_t unseen_count;
};

/* Without hostPID: the kubelet's word. */
static bool is_alive_unseen(struct lazy_holders *lazy, const struct claim *c)
{
	const struct container_start_tools *t = lazy->tools;
	enum pod_life life = t->life(t->arg, c);

	if (life == POD_UNSEEN && lazy->unseen_count < HM_COUNT(lazy->unseen))
		lazy->unseen[lazy->unseen_count++] = c;
	return life == POD_LIVES;
}

static bool is_alive(const struct claim *c, void *arg)
{
	struct lazy_holders *lazy = arg;
	const struct agent_paths *paths = lazy->tools->binding.paths;
	struct hm_err e;

	if (lazy->seen == NULL && holders_scan("/proc", &lazy->seen, &e) < 0) {
		log_warn("cannot see whether a slot's holder lives; taking it for alive", KV_ERR(&e));
		return true;
	}
	if (holders_mounted(lazy->seen, agent_path_alloc(paths, c->number, HM_ALLOC_USAGE).s))
		return true;
	return !sight_of_node("/proc", paths->kubelet_socket.s) && is_alive_unseen(lazy, c);
}

static void say_unseen(const struct lazy_holders *lazy)
{
	for (size_t i = 0; i < lazy->unseen_count; i++) {
		const struct claim *c = lazy->unseen[i];

		log_warn("a slot is given out that another pod's container may still use: without hostPID and the "
			 "kubelet's pod-resources folder nothing tells whether that has ended",
			 KV("slot", c->devices[0]), KV_U64("number", c->number), KV("pod_uid", c->pod_uid),
			 KV("container", c->container));
		/* The same words each time: one event that counts. Mostly the kubelet just gave the slot on. */
		cluster_tell_node(lazy->tools->cluster, "Warning", "SlotGivenOutUnseen",
				  "the slot of a vGPU that may still run was given out: give the agent hostPID");
		++*lazy->tools->unseen;
	}
}

static int check_holders(const struct container_start_tools *t, const struct prestart_facts *facts,
			 const char *const *ids, size_t count, const struct prestart_target *targets,
			 size_t target_count, struct hm_err *e)
{
	struct lazy_holders lazy = { .tools = t };
	int r = prestart_check_holders(facts, ids, count, targets, target_count, is_alive, &lazy, e);

	holders_free(lazy.seen);
	if (r == 0)
		say_unseen(&lazy);
	return r;
}

static int start_one(const struct container_start_tools *t, const struct prestart_target *target,
		     const char *const *ids, size_t count, struct hm_err *e)
{
	struct claim c;
	int r = t->offer->class->start(t->offer, target, ids, count, claims_find(t->binding.claims, target->number), &c,
				       e);

	if (r < 0)
		return r;
	c.state = CLAIM_ACTIVE;
	if (target->classic)
		c.cdi[0] = '\0';
	if (target->pod_uid[0] != '\0')
		hm_fmt(c.pod_uid, sizeof c.pod_uid, "%s", target->pod_uid);
	if (target->container[0] != '\0')
		hm_fmt(c.container, sizeof c.container, "%s", target->container);
	r = binding_of(&c)->start(&t->binding, &c, e);
	claim_fini(&c);
	if (r < 0)
		return r;
	if (t->offer->class->started != NULL)
		t->offer->class->started(t->offer, claims_find(t->binding.claims, target->number));
	pending_remove(t->binding.pending, target->number);
	log_v(1, "ready to start", KV_U64("number", target->number), KV("pod_uid", target->pod_uid),
	      KV("container", target->container));
	return 0;
}

/* Once for each trouble: a start that waits looks again every SERVICE_LOOK_MS. */
static void say_trouble(struct hm_err *said, const struct hm_err *why)
{
	if (why->code != 0 && strcmp(said->msg, why->msg) != 0)
		log_warn("the kubelet's checkpoint cannot be read; going by the Allocate calls that are remembered",
			 KV_ERR(why));
	else if (why->code == 0 && said->code != 0)
		log_info("the kubelet's checkpoint can be read again");
	*said = *why;
}

int container_start(const struct container_start_tools *t, const char *const *ids, size_t count, struct hm_err *e)
{
	struct prestart_target targets[PRESTART_MAX_TARGETS];
	hm_auto(checkpoint) *checkpoint = NULL;
	struct prestart_facts facts = { .resource = t->offer->resource,
					.alloc_dir = t->binding.paths->alloc.s,
					.others_start = t->offer->class->others_start,
					.claims = t->binding.claims,
					.pending = t->binding.pending };
	struct hm_err why = { 0 };
	size_t target_count;

	if (checkpoint_read(t->binding.paths->checkpoint.s, t->offer->resource, &checkpoint, &why) == 0)
		why = (struct hm_err) { 0 };
	say_trouble(t->checkpoint_trouble, &why);
	facts.checkpoint = checkpoint;
	facts.checkpoint_trouble = why.msg;
	if (prestart_find(&facts, ids, count, targets, &target_count, e) < 0 ||
	    (t->offer->class->ids_are_held && check_holders(t, &facts, ids, count, targets, target_count, e) < 0))
		return -e->code;
	if (target_count == 0)
		log_info("a container that another plugin gave its devices starts with what that gave it",
			 KV("first_id", ids[0]));
	for (size_t i = 0; i < target_count; i++)
		if (start_one(t, &targets[i], ids, count, e) < 0)
			return -e->code;
	return 0;
}
