#include "smi/report.h"

#include <stdlib.h>
#include <string.h>

/* The tree under construction: what fails once makes the whole fail. */
struct maker {
	bool failed;
};

static void put(struct maker *m, struct cJSON *to, const char *key, struct cJSON *item)
{
	bool ok = item != NULL && to != NULL &&
		  (key == NULL ? cJSON_AddItemToArray(to, item) : cJSON_AddItemToObject(to, key, item));

	if (!ok) {
		cJSON_Delete(item);
		m->failed = true;
	}
}

static struct cJSON *put_new(struct maker *m, struct cJSON *to, const char *key, struct cJSON *item)
{
	put(m, to, key, item);
	return m->failed ? NULL : item;
}

static bool is_ascii(const char *text)
{
	while (*text > 0)
		text++;
	return *text == '\0';
}

/* cJSON escapes control characters itself, but passes on what is no UTF-8: such a text is escaped as a log would. */
static void put_text(struct maker *m, struct cJSON *to, const char *key, const char *text)
{
	hm_auto_str escaped = { 0 };

	if (!is_ascii(text)) {
		str_add_escaped(&escaped, text, strlen(text));
		m->failed = m->failed || str_failed(&escaped);
		text = str_text(&escaped);
	}
	put(m, to, key, cJSON_CreateString(text));
}

/* Doubles hold whole numbers up to 2^53: 8 PiB. */
static void put_number(struct maker *m, struct cJSON *to, const char *key, uint64_t value)
{
	put(m, to, key, value == HAMIVGPU_UNKNOWN ? cJSON_CreateNull() : cJSON_CreateNumber((double)value));
}

static void put_int(struct maker *m, struct cJSON *to, const char *key, int value)
{
	put(m, to, key, value < 0 ? cJSON_CreateNull() : cJSON_CreateNumber(value));
}

static void put_state(struct maker *m, struct cJSON *to, const struct hamivgpu_error *state)
{
	static const char *const names[] = {
		[HAMIVGPU_OK] = "ok",
		[HAMIVGPU_NO_MEMORY] = "no_memory",
		[HAMIVGPU_INVALID] = "invalid",
		[HAMIVGPU_NOT_FOUND] = "not_found",
		[HAMIVGPU_NOT_READY] = "not_ready",
		[HAMIVGPU_NO_PERMISSION] = "no_permission",
		[HAMIVGPU_UNSUPPORTED] = "unsupported",
		[HAMIVGPU_BROKEN] = "broken",
		[HAMIVGPU_FAILED] = "failed",
	};

	put_text(m, to, "state", (size_t)state->code < HM_COUNT(names) ? names[state->code] : "failed");
	put_text(m, to, "message", state->message);
}

static void put_sources(struct maker *m, struct cJSON *root, const struct hamivgpu *h)
{
	const struct hamivgpu_node *node = hamivgpu_node(h);
	struct cJSON *driver = put_new(m, root, "driver", cJSON_CreateObject());
	struct cJSON *agent = put_new(m, root, "agent", cJSON_CreateObject());

	put_state(m, driver, hamivgpu_driver_state(h));
	put_text(m, driver, "version", node->driver_version);
	put_int(m, driver, "cuda_version", node->cuda_version);
	put_state(m, agent, hamivgpu_agent_state(h));
	put_text(m, agent, "slicing", node->slicing);
	put_text(m, agent, "binding", node->binding);
	put_number(m, agent, "slots_per_card", node->slots_per_card);
	put_number(m, agent, "slot_memory_mb", node->slot_memory_mb);
	put_number(m, agent, "pid", node->agent_pid);
}

static void put_card(struct maker *m, struct cJSON *cards, const struct hamivgpu_card *card)
{
	struct cJSON *to = put_new(m, cards, NULL, cJSON_CreateObject());

	put_int(m, to, "index", card->index);
	put_text(m, to, "uuid", card->uuid);
	put_text(m, to, "model", card->model);
	put_text(m, to, "pci_bus_id", card->pci_bus_id);
	put_int(m, to, "minor", card->minor);
	put_int(m, to, "numa_node", card->numa_node);
	put(m, to, "mig_enabled", cJSON_CreateBool(card->mig_enabled));
	put_number(m, to, "memory_total", card->memory_total);
	put_number(m, to, "memory_used", card->memory_used);
	put_number(m, to, "memory_reserved", card->reserved);
	put_int(m, to, "busy_percent", card->busy_percent);
	put_number(m, to, "slots", card->slots);
	put_number(m, to, "slots_used", card->slots_used);
	put_number(m, to, "slot_memory", card->slot_memory);
	put_number(m, to, "slot_cores", card->slot_cores);
}

static const struct hamivgpu_card *card_at(const struct hamivgpu *h, int at)
{
	return at < 0 ? NULL : hamivgpu_card(h, (size_t)at);
}

static void put_share(struct maker *m, struct cJSON *shares, const struct hamivgpu *h,
		      const struct hamivgpu_share *share)
{
	struct cJSON *to = put_new(m, shares, NULL, cJSON_CreateObject());
	const struct hamivgpu_card *card = card_at(h, share->card);

	put_text(m, to, "uuid", share->uuid);
	put_int(m, to, "index", card == NULL ? -1 : card->index);
	put_number(m, to, "slots", share->slots);
	put_number(m, to, "first_slot", share->first_slot);
	put_number(m, to, "cores", share->cores);
	put_number(m, to, "memory_limit", share->memory);
	put_number(m, to, "memory_used", share->memory_used);
	put_number(m, to, "memory_peak", share->memory_peak);
	put_number(m, to, "refused", share->refused);
	put_number(m, to, "spilled", share->spilled);
	put_number(m, to, "spilled_bytes", share->spilled_bytes);
}

static void put_claim(struct maker *m, struct cJSON *vgpus, const struct hamivgpu *h,
		      const struct hamivgpu_claim *claim)
{
	struct cJSON *to = put_new(m, vgpus, NULL, cJSON_CreateObject());
	struct cJSON *pod, *cards, *usage;

	put_number(m, to, "number", claim->number);
	put_text(m, to, "state", claim->state);
	pod = put_new(m, to, "pod", cJSON_CreateObject());
	put_text(m, pod, "uid", claim->pod_uid);
	put_text(m, pod, "namespace", claim->pod_namespace);
	put_text(m, pod, "name", claim->pod_name);
	put_text(m, to, "container", claim->container);
	put_text(m, to, "resource", claim->resource);
	put_text(m, to, "cdi", claim->cdi);
	put_number(m, to, "created_ms", claim->created_ms);
	cards = put_new(m, to, "cards", cJSON_CreateArray());
	for (size_t i = 0; i < claim->share_count; i++)
		put_share(m, cards, h, &claim->shares[i]);
	usage = put_new(m, to, "usage", cJSON_CreateObject());
	put_state(m, usage, &claim->usage);
	put_number(m, usage, "processes", claim->member_count);
	put_number(m, usage, "troubles", claim->troubles);
	put_text(m, usage, "last_trouble", claim->last_trouble);
}

static void put_process(struct maker *m, struct cJSON *processes, const struct hamivgpu *h,
			const struct hamivgpu_process *p)
{
	struct cJSON *to = put_new(m, processes, NULL, cJSON_CreateObject());
	const struct hamivgpu_card *card = card_at(h, p->card);
	const struct hamivgpu_claim *claim = p->claim < 0 ? NULL : hamivgpu_claim(h, (size_t)p->claim);

	put_number(m, to, "pid", p->pid == 0 ? HAMIVGPU_UNKNOWN : p->pid);
	put_number(m, to, "container_pid", p->container_pid == 0 ? HAMIVGPU_UNKNOWN : p->container_pid);
	put_text(m, to, "name", p->name);
	put_text(m, to, "uuid", card == NULL ? "" : card->uuid);
	put_int(m, to, "index", card == NULL ? -1 : card->index);
	put_number(m, to, "memory_used", p->memory_used);
	put_number(m, to, "vgpu", claim == NULL ? HAMIVGPU_UNKNOWN : claim->number);
}

int report_json(const struct hamivgpu *h, uint64_t now_ms, struct cJSON **out, struct hm_err *e)
{
	hm_auto(cJSON) *root = cJSON_CreateObject();
	struct maker m = { root == NULL };
	struct cJSON *list;

	put_number(&m, root, "version", 1);
	put_number(&m, root, "timestamp_ms", now_ms);
	put_sources(&m, root, h);
	list = put_new(&m, root, "cards", cJSON_CreateArray());
	for (size_t i = 0; i < hamivgpu_card_count(h); i++)
		put_card(&m, list, hamivgpu_card(h, i));
	list = put_new(&m, root, "vgpus", cJSON_CreateArray());
	for (size_t i = 0; i < hamivgpu_claim_count(h); i++)
		put_claim(&m, list, h, hamivgpu_claim(h, i));
	list = put_new(&m, root, "processes", cJSON_CreateArray());
	for (size_t i = 0; i < hamivgpu_process_count(h); i++)
		put_process(&m, list, h, hamivgpu_process(h, i));
	list = put_new(&m, root, "problems", cJSON_CreateArray());
	for (size_t i = 0; i < hamivgpu_problem_count(h); i++)
		put_text(&m, list, NULL, hamivgpu_problem(h, i));
	if (m.failed)
		return hm_err_set(e, HM_ENOMEM, "JSON");
	*out = HM_STEAL(root);
	return 0;
}

int report_json_text(const struct cJSON *tree, struct str *out, struct hm_err *e)
{
	char *text = cJSON_Print(tree);

	if (text == NULL)
		return hm_err_set(e, HM_ENOMEM, "JSON");
	str_add(out, text);
	str_addc(out, '\n');
	cJSON_free(text);
	return 0;
}
