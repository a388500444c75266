#include "sim/simctl/nvml_calls.h"

#include <string.h>

#include "core/macros.h"

static const char *const calls[] = {
#define CALL(name, what) #name,
#include "sim/nvml/modelled.def"
#undef CALL
};

bool nvml_call_is_modelled(const char *name)
{
	for (size_t i = 0; i < HM_COUNT(calls); i++)
		if (strcmp(calls[i], name) == 0)
			return true;
	return false;
}
