#include "vgpu/env_limits.h"

#include <string.h>

#include "contract/container.h"
#include "contract/region_layout.h"
#include "core/fmt.h"
#include "core/macros.h"
#include "core/num.h"

static uint64_t unit(char c)
{
	switch (c) {
	case 'k':
	case 'K': return UINT64_C(1) << 10;
	case 'm':
	case 'M': return UINT64_C(1) << 20;
	case 'g':
	case 'G': return UINT64_C(1) << 30;
	default: return 0;
	}
}

bool env_size(const char *text, uint64_t *out)
{
	size_t n = strlen(text);
	uint64_t factor = n > 0 ? unit(text[n - 1]) : 0, number;

	if (factor != 0)
		n--;
	else
		factor = 1;
	if (n > 1 && text[0] == '0')
		return false;
	if (!num_u64(text, n, REGION_MAX_BYTES, &number) || !num_mul(number, factor, &number))
		return false;
	if (number > REGION_MAX_BYTES)
		return false;
	*out = number;
	return true;
}

const char *env_find(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment != NULL && *environment != NULL; environment++) {
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment + n + 1;
	}
	return NULL;
}

/* Digits and nothing else: a percentage has no suffix. */
static bool percent(const char *text, uint64_t *out)
{
	return (text[0] != '0' || text[1] == '\0') && num_u64_str(text, UINT32_MAX, out);
}

/* A variable of which there is one for all cards and one for each. */
static const struct per_card {
	const char *name;
	bool (*parse)(const char *text, uint64_t *out);
	const char *wanted;
} memory_variable = { HM_ENV_MEMORY_LIMIT, env_size, "a size such as 4096m" },
  cores_variable = { HM_ENV_CORES_LIMIT, percent, "a percentage such as 30" };

static int read_one(char *const *environment, const struct per_card *variable, const char *name, uint64_t *out,
		    struct hm_err *e)
{
	const char *text = env_find(environment, name);

	*out = 0;
	if (text == NULL || text[0] == '\0' || variable->parse(text, out))
		return 0;
	return hm_err_set(e, HM_EINVAL, "%s=%.32s is not %s", name, text, variable->wanted);
}

static int read_cards(char *const *environment, const struct per_card *variable, uint64_t *all, uint64_t *card,
		      struct hm_err *e)
{
	int r = read_one(environment, variable, variable->name, all, e);

	for (unsigned i = 0; i < HM_MAX_CARDS && r == 0; i++) {
		char name[sizeof HM_ENV_MEMORY_LIMIT + 8];

		hm_fmt(name, sizeof name, "%s_%u", variable->name, i);
		r = read_one(environment, variable, name, &card[i], e);
	}
	return r;
}

/* A variable that is one of a few words; where it is not set the first one's value. */
struct choice {
	const char *name, *wanted;
	struct word {
		const char *text;
		unsigned value;
	} words[6];
};

static int read_choice(char *const *environment, const struct choice *c, unsigned *out, struct hm_err *e)
{
	const char *text = env_find(environment, c->name);

	*out = c->words[0].value;
	if (text == NULL || text[0] == '\0')
		return 0;
	for (size_t i = 0; i < HM_COUNT(c->words) && c->words[i].text != NULL; i++) {
		*out = c->words[i].value;
		if (strcmp(text, c->words[i].text) == 0)
			return 0;
	}
	return hm_err_set(e, HM_EINVAL, "%s=%.32s is not %s", c->name, text, c->wanted);
}

static int read_manner(char *const *environment, struct env_limits *out, struct hm_err *e)
{
	static const struct choice priority = { HM_ENV_PRIORITY, "0 or 1", { { "1", 1 }, { "0", 0 } } };
	static const struct choice policy = { HM_ENV_POLICY,
					      "default, force or disable",
					      { { "default", LIMIT_POLICY_DEFAULT },
						{ "DEFAULT", LIMIT_POLICY_DEFAULT },
						{ "force", LIMIT_POLICY_FORCE },
						{ "FORCE", LIMIT_POLICY_FORCE },
						{ "disable", LIMIT_POLICY_DISABLE },
						{ "DISABLE", LIMIT_POLICY_DISABLE } } };
	static const struct choice oversubscribe = { HM_ENV_OVERSUBSCRIBE,
						     "true or false",
						     { { "false", 0 }, { "0", 0 }, { "true", 1 }, { "1", 1 } } };
	unsigned number = 0, on = 0;
	int r = read_choice(environment, &priority, &out->priority, e);

	if (r == 0)
		r = read_choice(environment, &policy, &number, e);
	if (r == 0)
		r = read_choice(environment, &oversubscribe, &on, e);
	out->policy = (enum limit_policy)number;
	out->oversubscribe = on != 0;
	return r;
}

static bool is_share(uint64_t cores)
{
	return cores > 0 && cores < 100;
}

int env_limits_read(char *const *environment, struct env_limits *out, struct hm_err *e)
{
	int r;

	*out = (struct env_limits) { .priority = 1 };
	r = read_cards(environment, &memory_variable, &out->all, out->card, e);
	if (r == 0)
		r = read_cards(environment, &cores_variable, &out->all_cores, out->cores, e);
	if (r < 0)
		return r;
	out->any_cores = is_share(out->all_cores);
	out->any = out->all != 0;
	for (unsigned i = 0; i < HM_MAX_CARDS; i++) {
		out->any_cores = out->any_cores || is_share(out->cores[i]);
		out->any = out->any || out->card[i] != 0;
	}
	out->any = out->any || out->any_cores;
	return out->any ? read_manner(environment, out, e) : 0;
}

uint64_t env_memory_of(const struct env_limits *l, unsigned ordinal)
{
	return ordinal < HM_MAX_CARDS && l->card[ordinal] != 0 ? l->card[ordinal] : l->all;
}

unsigned env_cores_of(const struct env_limits *l, unsigned ordinal)
{
	uint64_t cores = ordinal < HM_MAX_CARDS && l->cores[ordinal] != 0 ? l->cores[ordinal] : l->all_cores;

	return is_share(cores) ? (unsigned)cores : 100;
}
