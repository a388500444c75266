#include "sim/simd/node_yaml.h"

#include <string.h>

#include "abi/nvml.h"
#include "core/cursor.h"
#include "core/macros.h"
#include "core/num.h"
#include "io/json.h"
#include "io/yaml.h"
#include "sim/simd/node_yaml_mig.h"

#define MIB ((uint64_t)1 << 20)
#define KIB ((uint64_t)1 << 10)

struct word {
	const char *text;
	uint32_t value;
};

static const struct word brands[] = {
	{ "Tesla", NVML_BRAND_TESLA },          { "GeForce", NVML_BRAND_GEFORCE },
	{ "Quadro", NVML_BRAND_QUADRO },        { "NVIDIA", NVML_BRAND_NVIDIA },
	{ "NvidiaRTX", NVML_BRAND_NVIDIA_RTX }, { "GeForceRTX", NVML_BRAND_GEFORCE_RTX },
	{ "Unknown", NVML_BRAND_UNKNOWN },
};
static const struct word architectures[] = {
	{ "Turing", NVML_ARCH_TURING }, { "Ampere", NVML_ARCH_AMPERE },       { "Ada", NVML_ARCH_ADA },
	{ "Hopper", NVML_ARCH_HOPPER }, { "Blackwell", NVML_ARCH_BLACKWELL },
};
/* As `nvidia-smi topo -m` names them. X: the card itself, NV#: not a PCI level, see nvlink. */
static const struct word levels[] = {
	{ "X", SIM_PCI_SAME },         { "PIX", SIM_PCI_SINGLE }, { "PXB", SIM_PCI_MULTIPLE },
	{ "PHB", SIM_PCI_HOSTBRIDGE }, { "NODE", SIM_PCI_NODE },  { "SYS", SIM_PCI_SYSTEM },
};
static const struct word link_remotes[] = { { "gpu", SIM_LINK_GPU }, { "switch", SIM_LINK_SWITCH } };

static int read_word(const struct json_at *at, const char *key, const struct word *words, size_t count, uint32_t *out,
		     struct hm_err *e)
{
	const char *text = NULL;
	int r = json_text(at, key, JSON_REQUIRED, &text, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i].text, text) == 0) {
			*out = words[i].value;
			return 0;
		}
	return json_err(at, key, e, "\"%.40s\" is none of the known words, %s to %s", text, words[0].text,
			words[count - 1].text);
}

/* ---- Numbers of a model: key, where, unit */

struct number {
	const char *key;
	size_t offset;
	uint64_t unit, max;
	bool wide; /* uint64_t, else uint32_t */
};
#define WIDE(member, unit) offsetof(struct sim_card_info, member), unit, (uint64_t)1 << 40, true
#define SMALL(member, unit, max) offsetof(struct sim_card_info, member), unit, max, false

static const struct number numbers[] = {
	{ "memory_mib", WIDE(memory_bytes, MIB) },
	{ "reserved_mib", WIDE(reserved_bytes, MIB) },
	{ "context_mib", WIDE(context_bytes, MIB) },
	{ "bar1_mib", WIDE(bar1_bytes, MIB) },
	{ "l2_kib", WIDE(l2_bytes, KIB) },
	{ "sms", SMALL(sms, 1, 1024) },
	{ "threads_per_sm", SMALL(threads_per_sm, 1, 4096) },
	{ "blocks_per_sm", SMALL(blocks_per_sm, 1, 64) },
	{ "registers_per_sm", SMALL(registers_per_sm, 1, 1 << 20) },
	{ "shared_per_sm_kib", SMALL(shared_per_sm, KIB, 1024) },
	{ "shared_per_block_kib", SMALL(shared_per_block, KIB, 1024) },
	{ "shared_per_block_optin_kib", SMALL(shared_per_block_optin, KIB, 1024) },
	{ "bus_width_bits", SMALL(bus_width_bits, 1, 16384) },
	{ "sm_clock_mhz", SMALL(sm_clock_mhz, 1, 10000) },
	{ "memory_clock_mhz", SMALL(memory_clock_mhz, 1, 30000) },
	{ "power_limit_w", SMALL(power_limit_mw, 1000, 10000) },
	{ "idle_power_w", SMALL(idle_power_mw, 1000, 10000) },
	{ "pcie_generation", SMALL(pcie_generation, 1, 8) },
	{ "pcie_width", SMALL(pcie_width, 1, 32) },
};

static int read_numbers(const struct json_at *model, struct sim_card_info *card, struct hm_err *e)
{
	for (size_t i = 0; i < HM_COUNT(numbers); i++) {
		const struct number *n = &numbers[i];
		void *where = (char *)card + n->offset;
		uint64_t v = 0;
		int r = json_u64(model, n->key, JSON_REQUIRED, 0, n->max, &v, e);

		if (r < 0)
			return r;
		if (n->wide)
			*(uint64_t *)where = v * n->unit;
		else
			*(uint32_t *)where = (uint32_t)(v * n->unit);
	}
	if (card->reserved_bytes >= card->memory_bytes)
		return json_err(model, "reserved_mib", e, "is not less than memory_mib");
	if (card->sms == 0)
		return json_err(model, "sms", e, "a card without multiprocessors");
	return 0;
}

static bool parse_hex(struct piece s, uint32_t *out)
{
	*out = 0;
	if (s.n == 0 || s.n > 8)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							: 16;

		if (digit == 16)
			return false;
		*out = *out << 4 | digit;
	}
	return true;
}

/* "0x1eb810de" */
static int read_hex(const struct json_at *at, const char *key, uint32_t *out, struct hm_err *e)
{
	const char *text = NULL;
	int r = json_text(at, key, JSON_REQUIRED, &text, e);

	if (r < 0)
		return r;
	if (strncmp(text, "0x", 2) != 0 || !parse_hex((struct piece) { text + 2, strlen(text + 2) }, out))
		return json_err(at, key, e, "\"%.40s\" is not a number as 0x1eb810de", text);
	return 0;
}

/* "7.5", "12.4" */
static int read_version(const struct json_at *at, const char *key, uint32_t *major, uint32_t *minor, struct hm_err *e)
{
	const char *text = NULL;
	int r = json_text(at, key, JSON_REQUIRED, &text, e);
	struct cur c;
	uint64_t b;

	if (r < 0)
		return r;
	c = cur_of(text, strlen(text));
	*major = (uint32_t)cur_u64(&c, '.', 99);
	if (c.bad || !piece_u64(cur_rest(&c), 99, &b))
		return json_err(at, key, e, "\"%.40s\" is not a version as \"12.4\"", text);
	*minor = (uint32_t)b;
	return 0;
}

/* ---- Models and cards */

static int check_model_keys(const struct json_at *model, struct hm_err *e)
{
	const char *keys[HM_COUNT(numbers) + 9] = {
		"name",          "brand", "architecture",     "compute_capability", "ecc",
		"pci_device_id", "vbios", "pci_subsystem_id", "mig_profiles"
	};

	for (size_t i = 0; i < HM_COUNT(numbers); i++)
		keys[9 + i] = numbers[i].key;
	return json_known(model, keys, HM_COUNT(keys), e);
}

static int read_model(const struct json_at *model, struct sim_card_info *card, struct hm_err *e)
{
	bool ecc = false;
	int r = check_model_keys(model, e);

	if (r < 0 || (r = json_copy(model, "name", JSON_REQUIRED, card->name, sizeof card->name, e)) < 0 ||
	    (r = json_copy(model, "vbios", JSON_OPTIONAL, card->vbios, sizeof card->vbios, e)) < 0 ||
	    (r = json_bool(model, "ecc", JSON_OPTIONAL, &ecc, e)) < 0 ||
	    (r = read_word(model, "brand", brands, HM_COUNT(brands), &card->brand, e)) < 0 ||
	    (r = read_word(model, "architecture", architectures, HM_COUNT(architectures), &card->architecture, e)) <
		    0 ||
	    (r = read_version(model, "compute_capability", &card->cc_major, &card->cc_minor, e)) < 0 ||
	    (r = read_hex(model, "pci_device_id", &card->pci_device_id, e)) < 0 ||
	    (r = read_hex(model, "pci_subsystem_id", &card->pci_subsystem_id, e)) < 0 ||
	    (r = read_numbers(model, card, e)) < 0)
		return r;
	card->ecc = ecc;
	return node_yaml_mig_profiles(model, card, e);
}

/* "0000:3b:00.0" */
static int read_pci(const struct json_at *at, struct sim_card_info *card, struct hm_err *e)
{
	const char *text = NULL;
	int r = json_text(at, "pci", JSON_REQUIRED, &text, e);
	struct cur c;
	struct piece domain, bus, device;

	if (r < 0)
		return r;
	c = cur_of(text, strlen(text));
	domain = cur_until(&c, ':');
	bus = cur_until(&c, ':');
	device = cur_until(&c, '.');
	if (c.bad || !piece_is(cur_rest(&c), "0") || !parse_hex(domain, &card->pci_domain) ||
	    !parse_hex(bus, &card->pci_bus) || !parse_hex(device, &card->pci_device) || card->pci_bus > 255 ||
	    card->pci_device > 31)
		return json_err(at, "pci", e, "\"%.40s\" is not a PCI address as 0000:3b:00.0", text);
	return 0;
}

static void set_cpus(uint64_t mask[SIM_CPU_WORDS], uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++)
		mask[i / 64] |= (uint64_t)1 << (i % 64);
}

/* "0-23,48-71" */
static int read_cpus(const struct json_at *at, struct sim_card_info *card, struct hm_err *e)
{
	enum { MAX_CPU = SIM_CPU_WORDS * 64 - 1 };
	const char *text = NULL;
	int r = json_text(at, "cpus", JSON_REQUIRED, &text, e);

	while (r == 0 && *text != '\0') {
		const char *comma = strchrnul(text, ',');
		struct piece part = { text, (size_t)(comma - text) };
		struct cur c = cur_of(part.p, part.n);
		uint64_t first = 0, last = 0;
		bool range = memchr(part.p, '-', part.n) != NULL;

		if (range)
			first = cur_u64(&c, '-', MAX_CPU);
		if (c.bad || !piece_u64(cur_rest(&c), MAX_CPU, &last) || (range && first > last))
			return json_err(at, "cpus", e, "\"%.60s\" is not a list of CPUs as 0-23,48-71", text);
		set_cpus(card->cpu_mask, range ? first : last, last);
		text = *comma == ',' ? comma + 1 : comma;
	}
	return r;
}

static int check_unique(const struct json_at *at, const struct sim_node *node, unsigned index, struct hm_err *e)
{
	const struct sim_card_info *c = &node->cards[index].info;

	if (strncmp(c->uuid, "GPU-", 4) != 0 || strlen(c->uuid) != 40)
		return json_err(at, "uuid", e, "\"%s\" is not a UUID as GPU-5a1e2a3b-...", c->uuid);
	for (unsigned i = 0; i < index; i++) {
		const struct sim_card_info *o = &node->cards[i].info;

		if (strcmp(o->uuid, c->uuid) == 0)
			return json_err(at, "uuid", e, "is that of card %u already", i);
		if (o->pci_domain == c->pci_domain && o->pci_bus == c->pci_bus && o->pci_device == c->pci_device)
			return json_err(at, "pci", e, "is that of card %u already", i);
		if (o->minor == c->minor)
			return json_err(at, "minor", e, "is that of card %u already", i);
	}
	return 0;
}

static int read_card(const struct json_at *at, const struct json_at *models, struct sim_node *node, unsigned index,
		     struct hm_err *e)
{
	static const char *const keys[] = { "model", "uuid",  "serial", "pci",          "numa",
					    "cpus",  "minor", "mig",    "mig_instances" };
	struct sim_card_info *card = &node->cards[index].info;
	uint64_t numa = UINT64_MAX, minor = index;
	const char *model_name = NULL;
	struct json_at model;
	bool mig = false;
	int r = json_known(at, keys, HM_COUNT(keys), e);

	if (r < 0 || (r = json_text(at, "model", JSON_REQUIRED, &model_name, e)) < 0)
		return r;
	if (json_object(models, model_name, JSON_REQUIRED, &model, NULL) < 0)
		return json_err(at, "model", e, "\"%.40s\" is not among the models", model_name);
	if ((r = read_model(&model, card, e)) < 0 ||
	    (r = json_copy(at, "uuid", JSON_REQUIRED, card->uuid, sizeof card->uuid, e)) < 0 ||
	    (r = json_copy(at, "serial", JSON_OPTIONAL, card->serial, sizeof card->serial, e)) < 0 ||
	    (r = read_pci(at, card, e)) < 0 || (r = read_cpus(at, card, e)) < 0 ||
	    (r = json_u64(at, "numa", JSON_OPTIONAL, 0, 255, &numa, e)) < 0 ||
	    (r = json_u64(at, "minor", JSON_OPTIONAL, 0, 255, &minor, e)) < 0 ||
	    (r = json_bool(at, "mig", JSON_OPTIONAL, &mig, e)) < 0)
		return r;
	if (mig && !card->mig_capable)
		return json_err(at, "mig", e, "the model has no MIG profiles");
	card->mig_enabled = mig;
	if ((r = node_yaml_mig_instances(at, card, e)) < 0)
		return r;
	card->numa_node = numa == UINT64_MAX ? -1 : (int32_t)numa;
	card->minor = (uint32_t)minor;
	return check_unique(at, node, index, e);
}

/* ---- Matrices */

static int matrix_row(const struct json_at *matrix, const struct sim_node *node, unsigned i, struct json_at *row,
		      struct hm_err *e)
{
	struct json_at item;
	int r;

	if (json_count(matrix) != node->card_count)
		return json_err(matrix, NULL, e, "needs %u rows, one a card", node->card_count);
	item = json_item(matrix, i);
	r = json_array(&item, NULL, JSON_REQUIRED, row, e);
	if (r == 0 && json_count(row) != node->card_count)
		return json_err(row, NULL, e, "needs %u entries, one a card", node->card_count);
	return r;
}

static int read_levels(const struct json_at *matrix, struct sim_node *node, struct hm_err *e)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct json_at row;
		int r = matrix_row(matrix, node, i, &row, e);

		for (unsigned j = 0; r == 0 && j < node->card_count; j++) {
			struct json_at item = json_item(&row, j);
			uint32_t level = 0;

			r = read_word(&item, NULL, levels, HM_COUNT(levels), &level, e);
			if (r == 0 && (level == SIM_PCI_SAME) != (i == j))
				return json_err(&item, NULL, e, "X stands for the card itself");
			node->cards[i].info.pci_level[j] = (uint8_t)level;
			if (r == 0 && j < i && node->cards[j].info.pci_level[i] != level)
				return json_err(&item, NULL, e, "differs from its mirror image");
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_link_counts(const struct json_at *matrix, struct sim_node *node, struct hm_err *e)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct json_at row;
		int r = matrix_row(matrix, node, i, &row, e);

		for (unsigned j = 0; r == 0 && j < node->card_count; j++) {
			struct json_at item = json_item(&row, j);
			uint64_t links = 0;

			r = json_u64(&item, NULL, JSON_REQUIRED, 0, i == j ? 0 : SIM_MAX_LINKS, &links, e);
			node->cards[i].info.nvlinks[j] = (uint8_t)links;
			if (r == 0 && j < i && node->cards[j].info.nvlinks[i] != links)
				return json_err(&item, NULL, e, "differs from its mirror image");
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* One link after the other: through switches each card's links go to the switches in turn, else to its peers. */
static int wire_links(const struct json_at *at, struct sim_node *node, uint32_t remote, struct hm_err *e)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct sim_card_info *c = &node->cards[i].info;
		unsigned used = 0, most = 0;

		for (unsigned j = 0; j < node->card_count; j++) {
			most = HM_MAX(most, (unsigned)c->nvlinks[j]);
			for (unsigned k = 0; remote == SIM_LINK_GPU && k < c->nvlinks[j]; k++) {
				if (used == SIM_MAX_LINKS)
					return json_err(at, "nvlink", e, "card %u has more than %d links", i,
							SIM_MAX_LINKS);
				c->links[used++] = (struct sim_link) { SIM_LINK_GPU, j };
			}
		}
		for (; remote == SIM_LINK_SWITCH && used < most; used++)
			c->links[used] = (struct sim_link) { SIM_LINK_SWITCH, used % node->switch_count };
	}
	return 0;
}

static int read_links(const struct json_at *root, struct sim_node *node, struct hm_err *e)
{
	struct json_at matrix;
	uint32_t remote = SIM_LINK_GPU;
	uint64_t switches = 0;
	int r = json_array(root, "topology", node->card_count > 1 ? JSON_REQUIRED : JSON_OPTIONAL, &matrix, e);

	if (r == 0 && matrix.node != NULL)
		r = read_levels(&matrix, node, e);
	if (r == 0)
		r = json_array(root, "nvlink", JSON_OPTIONAL, &matrix, e);
	if (r < 0 || matrix.node == NULL)
		return r;
	r = read_link_counts(&matrix, node, e);
	if (r == 0)
		r = read_word(root, "nvlink_to", link_remotes, HM_COUNT(link_remotes), &remote, e);
	if (r == 0 && remote == SIM_LINK_SWITCH)
		r = json_u64(root, "nvlink_switches", JSON_REQUIRED, 1, 16, &switches, e);
	node->switch_count = (uint32_t)switches;
	return r == 0 ? wire_links(root, node, remote, e) : r;
}

/* ---- The node */

static int read_node(const struct json_at *root, struct sim_node *node, struct hm_err *e)
{
	static const char *const keys[] = {
		"name",  "driver_version", "nvml_version", "cuda_version", "models",
		"cards", "topology",       "nvlink",       "nvlink_to",    "nvlink_switches"
	};
	struct json_at models, cards;
	uint32_t major = 0, minor = 0;
	int r = json_known(root, keys, HM_COUNT(keys), e);

	if (r < 0 || (r = json_copy(root, "name", JSON_REQUIRED, node->name, sizeof node->name, e)) < 0 ||
	    (r = json_copy(root, "driver_version", JSON_REQUIRED, node->driver_version, sizeof node->driver_version,
			   e)) < 0 ||
	    (r = json_copy(root, "nvml_version", JSON_REQUIRED, node->nvml_version, sizeof node->nvml_version, e)) <
		    0 ||
	    (r = read_version(root, "cuda_version", &major, &minor, e)) < 0 ||
	    (r = json_object(root, "models", JSON_REQUIRED, &models, e)) < 0 ||
	    (r = json_array(root, "cards", JSON_REQUIRED, &cards, e)) < 0)
		return r;
	node->cuda_version = 1000 * major + 10 * minor;
	if (json_count(&cards) > SIM_MAX_CARDS)
		return json_err(root, "cards", e, "more than %d", SIM_MAX_CARDS);
	node->card_count = (uint32_t)json_count(&cards);
	for (unsigned i = 0; i < node->card_count; i++) {
		struct json_at item = json_item(&cards, i), card;

		r = json_object(&item, NULL, JSON_REQUIRED, &card, e);
		if (r == 0)
			r = read_card(&card, &models, node, i, e);
		if (r < 0)
			return r;
	}
	return read_links(root, node, e);
}

int node_yaml_load(const char *text, size_t n, struct sim_node *node, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct json_at root, object;
	int r = yaml_parse(text, n, &tree, e);

	if (r < 0)
		return r;
	root = yaml_root(tree);
	r = json_object(&root, NULL, JSON_REQUIRED, &object, e);
	return r == 0 ? read_node(&root, node, e) : r;
}
