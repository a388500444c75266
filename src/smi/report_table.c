#include "smi/report.h"

#include <stdio.h>
#include <string.h>

#include "core/fmt.h"
#include "smi/table.h"

enum { CELL_BYTES = 64, SHORT_UUID = 12 };

static const struct column card_columns[] = {
	{ "GPU", 3, true },
	{ "Name", 26, false },
	{ "UUID", SHORT_UUID, false },
	{ "Memory used / total", 21, true },
	{ "GPU-Util", 8, true },
	{ "Slots", 9, true },
};
static const struct column vgpu_columns[] = {
	{ "vGPU", 8, false }, { "Container", 31, false }, { "Slots", 5, true }, { "Memory used / limit", 21, true },
	{ "Cores", 5, true }, { "State", 9, false },
};
static const struct column process_columns[] = {
	{ "GPU", 3, true },         { "PID", 8, true },       { "vGPU", 8, false },
	{ "Container", 30, false }, { "Process", 18, false }, { "Memory", 12, true },
};

static uint64_t mib(uint64_t bytes)
{
	return (bytes >> 20) + (bytes >> 19 & 1);
}

/* "1000MiB", "N/A" */
static void memory_text(uint64_t bytes, char out[CELL_BYTES])
{
	if (bytes == HAMIVGPU_UNKNOWN)
		hm_fmt(out, CELL_BYTES, "N/A");
	else
		hm_fmt(out, CELL_BYTES, "%lluMiB", (unsigned long long)mib(bytes));
}

static void memory_pair(uint64_t used, uint64_t total, char out[CELL_BYTES])
{
	char a[CELL_BYTES], b[CELL_BYTES];

	memory_text(used, a);
	memory_text(total, b);
	snprintf(out, CELL_BYTES, "%.24s / %9.24s", a, b);
}

/* A row whose texts were put together apart: their failure is the report's. */
static void add_row(struct str *out, const struct column *columns, size_t count, const char *const *cells,
		    const struct str *part, const struct str *other)
{
	table_row(out, columns, count, cells);
	out->failed = out->failed || str_failed(part) || (other != NULL && str_failed(other));
}

static void add_title(struct str *out, const char *title)
{
	str_addf(out, "\n%s:\n", title);
}

static void add_header(const struct hamivgpu *h, const char *version, struct str *out)
{
	const struct hamivgpu_node *node = hamivgpu_node(h);
	char line[160], cuda[24] = "N/A";

	if (node->cuda_version > 0)
		snprintf(cuda, sizeof cuda, "%d.%d", node->cuda_version / 1000, node->cuda_version % 1000 / 10);
	snprintf(line, sizeof line, "hami-smi %-20.20s  Driver Version: %-20.40s  CUDA Version: %s", version,
		 node->driver_version[0] == '\0' ? "N/A" : node->driver_version, cuda);
	table_line_rule(out, card_columns, HM_COUNT(card_columns));
	table_line(out, card_columns, HM_COUNT(card_columns), line);
	if (node->slicing[0] == '\0')
		return;
	snprintf(line, sizeof line, "%llu slots per card, %s slicing, %s binding",
		 (unsigned long long)node->slots_per_card, node->slicing, node->binding);
	table_line(out, card_columns, HM_COUNT(card_columns), line);
}

static void number_or_dash(int value, char out[CELL_BYTES])
{
	if (value < 0)
		hm_fmt(out, CELL_BYTES, "-");
	else
		hm_fmt(out, CELL_BYTES, "%d", value);
}

static void add_card(const struct hamivgpu_card *card, struct str *out)
{
	char index[CELL_BYTES], uuid[SHORT_UUID + 1], memory[CELL_BYTES], busy[CELL_BYTES] = "N/A",
									  slots[CELL_BYTES] = "N/A";
	hm_auto_str name = { 0 };
	const char *cells[] = { index, NULL, uuid, memory, busy, slots };

	number_or_dash(card->index, index);
	str_add_escaped(&name, card->model, strlen(card->model));
	cells[1] = str_text(&name);
	hm_fmt(uuid, sizeof uuid, "%s", card->uuid);
	memory_pair(card->memory_used, card->memory_total, memory);
	if (card->busy_percent >= 0)
		hm_fmt(busy, sizeof busy, "%d%%", card->busy_percent);
	if (card->slots > 0)
		hm_fmt(slots, sizeof slots, "%u / %u", card->slots_used, card->slots);
	else if (card->mig_enabled)
		hm_fmt(slots, sizeof slots, "MIG");
	add_row(out, card_columns, HM_COUNT(card_columns), cells, &name, NULL);
}

static void add_cards(const struct hamivgpu *h, struct str *out)
{
	table_titles(out, card_columns, HM_COUNT(card_columns));
	for (size_t i = 0; i < hamivgpu_card_count(h); i++)
		add_card(hamivgpu_card(h, i), out);
	if (hamivgpu_card_count(h) == 0)
		table_line(out, card_columns, HM_COUNT(card_columns), "no cards");
	table_rule(out, card_columns, HM_COUNT(card_columns), '-');
}

/* "namespace/pod/container", or "pod <uid>/container" until the agent has looked up the names. */
static void container_text(const struct hamivgpu_claim *claim, struct str *out)
{
	if (claim->pod_name[0] != '\0') {
		str_add_escaped(out, claim->pod_namespace, strlen(claim->pod_namespace));
		str_addc(out, '/');
		str_add_escaped(out, claim->pod_name, strlen(claim->pod_name));
	} else if (claim->pod_uid[0] != '\0') {
		str_add(out, "pod ");
		str_add_escaped(out, claim->pod_uid, strlen(claim->pod_uid));
	} else {
		str_addf(out, "unknown (claim %llu)", (unsigned long long)claim->number);
		return;
	}
	str_addc(out, '/');
	str_add_escaped(out, claim->container, strlen(claim->container));
}

/* "<card>/<slot>": HAMI_VGPU_UUID of the container with the card's index for its UUID. */
static void vgpu_text(const struct hamivgpu *h, const struct hamivgpu_share *share, char out[CELL_BYTES])
{
	const struct hamivgpu_card *card = share->card < 0 ? NULL : hamivgpu_card(h, (size_t)share->card);

	if (card == NULL || card->index < 0)
		hm_fmt(out, CELL_BYTES, "?/%u", share->first_slot);
	else
		hm_fmt(out, CELL_BYTES, "%d/%u", card->index, share->first_slot);
}

static void add_share(const struct hamivgpu *h, const struct hamivgpu_claim *claim, size_t i, struct str *out)
{
	const struct hamivgpu_share *share = &claim->shares[i];
	char vgpu[CELL_BYTES], slots[CELL_BYTES], memory[CELL_BYTES], cores[CELL_BYTES];
	hm_auto_str container = { 0 };
	const char *cells[] = { vgpu, NULL, slots, memory, cores, claim->state };

	vgpu_text(h, share, vgpu);
	if (i == 0)
		container_text(claim, &container);
	cells[1] = str_text(&container);
	hm_fmt(slots, sizeof slots, "%u", share->slots);
	memory_pair(share->memory_used, share->memory, memory);
	hm_fmt(cores, sizeof cores, "%u%%", share->cores);
	add_row(out, vgpu_columns, HM_COUNT(vgpu_columns), cells, &container, NULL);
}

static void add_vgpus(const struct hamivgpu *h, struct str *out)
{
	add_title(out, "vGPUs");
	table_titles(out, vgpu_columns, HM_COUNT(vgpu_columns));
	for (size_t i = 0; i < hamivgpu_claim_count(h); i++) {
		const struct hamivgpu_claim *claim = hamivgpu_claim(h, i);

		for (size_t j = 0; j < claim->share_count; j++)
			add_share(h, claim, j, out);
	}
	if (hamivgpu_claim_count(h) == 0)
		table_line(out, vgpu_columns, HM_COUNT(vgpu_columns), "no vGPUs in use");
	table_rule(out, vgpu_columns, HM_COUNT(vgpu_columns), '-');
}

/* The process's share of its claim on the card, for its vGPU's name. */
static void process_vgpu(const struct hamivgpu *h, const struct hamivgpu_process *p, char vgpu[CELL_BYTES],
			 struct str *container)
{
	const struct hamivgpu_claim *claim = p->claim < 0 ? NULL : hamivgpu_claim(h, (size_t)p->claim);

	hm_fmt(vgpu, CELL_BYTES, "-");
	if (claim == NULL)
		return;
	container_text(claim, container);
	for (size_t i = 0; i < claim->share_count; i++) {
		if (claim->shares[i].card == p->card)
			vgpu_text(h, &claim->shares[i], vgpu);
	}
}

static void add_process(const struct hamivgpu *h, const struct hamivgpu_process *p, struct str *out)
{
	const struct hamivgpu_card *card = p->card < 0 ? NULL : hamivgpu_card(h, (size_t)p->card);
	char index[CELL_BYTES], pid[CELL_BYTES], vgpu[CELL_BYTES], memory[CELL_BYTES];
	hm_auto_str container = { 0 };
	hm_auto_str name = { 0 };
	const char *cells[] = { index, pid, vgpu, NULL, NULL, memory };

	number_or_dash(card == NULL ? -1 : card->index, index);
	if (p->pid == 0)
		hm_fmt(pid, sizeof pid, "in %u", p->container_pid);
	else
		hm_fmt(pid, sizeof pid, "%llu", (unsigned long long)p->pid);
	process_vgpu(h, p, vgpu, &container);
	str_add_escaped(&name, p->name, strlen(p->name));
	memory_text(p->memory_used, memory);
	cells[3] = str_text(&container);
	cells[4] = str_text(&name);
	add_row(out, process_columns, HM_COUNT(process_columns), cells, &container, &name);
}

static void add_processes(const struct hamivgpu *h, struct str *out)
{
	add_title(out, "Processes");
	table_titles(out, process_columns, HM_COUNT(process_columns));
	for (size_t i = 0; i < hamivgpu_process_count(h); i++)
		add_process(h, hamivgpu_process(h, i), out);
	if (hamivgpu_process_count(h) == 0)
		table_line(out, process_columns, HM_COUNT(process_columns), "no processes");
	table_rule(out, process_columns, HM_COUNT(process_columns), '-');
}

/* Cards that err, claims that cannot be read, what libvgpu complained of. */
static void add_notes(const struct hamivgpu *h, struct str *out)
{
	hm_auto_str notes = { 0 };

	for (size_t i = 0; i < hamivgpu_problem_count(h); i++)
		str_addf(&notes, "  %s\n", hamivgpu_problem(h, i));
	for (size_t i = 0; i < hamivgpu_claim_count(h); i++) {
		const struct hamivgpu_claim *claim = hamivgpu_claim(h, i);

		if (claim->usage.code != HAMIVGPU_OK && claim->usage.code != HAMIVGPU_NOT_FOUND) {
			str_addf(&notes, "  claim %llu: ", (unsigned long long)claim->number);
			str_add_escaped(&notes, claim->usage.message, strlen(claim->usage.message));
			str_addc(&notes, '\n');
		}
		if (claim->troubles == 0)
			continue;
		str_addf(&notes,
			 "  claim %llu: libvgpu had trouble %llu times, last: ", (unsigned long long)claim->number,
			 (unsigned long long)claim->troubles);
		str_add_escaped(&notes, claim->last_trouble, strlen(claim->last_trouble));
		str_addc(&notes, '\n');
	}
	if (notes.n > 0) {
		add_title(out, "Notes");
		str_add(out, str_text(&notes));
	}
	out->failed = out->failed || str_failed(&notes);
}

void report_table(const struct hamivgpu *h, const char *version, struct str *out)
{
	add_header(h, version, out);
	add_cards(h, out);
	add_vgpus(h, out);
	add_processes(h, out);
	add_notes(h, out);
}

void report_list(const struct hamivgpu *h, struct str *out)
{
	for (size_t i = 0; i < hamivgpu_card_count(h); i++) {
		const struct hamivgpu_card *card = hamivgpu_card(h, i);
		char index[CELL_BYTES];

		number_or_dash(card->index, index);
		str_addf(out, "GPU %s: ", index);
		str_add_escaped(out, card->model[0] == '\0' ? "unknown GPU" : card->model,
				card->model[0] == '\0' ? sizeof "unknown GPU" - 1 : strlen(card->model));
		str_addf(out, " (UUID: %s)\n", card->uuid);
	}
}
