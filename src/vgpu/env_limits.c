#include "vgpu/env_limits.h"

#include <string.h>

#include "contract/container.h"
#include "contract/region_layout.h"
#include "core/fmt.h"
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

static int read_one(char *const *environment, const char *name, uint64_t *out, struct hm_err *e)
{
	const char *text = env_find(environment, name);

	*out = 0;
	if (text == NULL || text[0] == '\0' || env_size(text, out))
		return 0;
	return hm_err_set(e, HM_EINVAL, "%s=%.32s is not a size such as 4096m", name, text);
}

int env_limits_read(char *const *environment, struct env_limits *out, struct hm_err *e)
{
	int r = read_one(environment, HM_ENV_MEMORY_LIMIT, &out->all, e);

	out->any = out->all != 0;
	for (unsigned i = 0; i < HM_MAX_CARDS && r == 0; i++) {
		char name[sizeof HM_ENV_MEMORY_LIMIT + 8];

		hm_fmt(name, sizeof name, "%s_%u", HM_ENV_MEMORY_LIMIT, i);
		r = read_one(environment, name, &out->card[i], e);
		out->any = out->any || out->card[i] != 0;
	}
	return r;
}
