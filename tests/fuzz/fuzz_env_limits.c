/* HAMi's limits in the environment, one variable a line: a refusal says why and names a variable; what is accepted is
 * in range, and a limit that was accepted is never lost. */
#include <assert.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "vgpu/env_limits.h"

enum { LINES = 24, TEXT_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char text[TEXT_BYTES];
	char *environment[LINES + 1] = { NULL }, *at = text, *end;
	struct hm_err e = { 0 };
	struct env_limits l;

	if (n >= sizeof text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	for (size_t i = 0; i < LINES && *at != '\0'; i++, at = end + (*end != '\0')) {
		end = at + strcspn(at, "\n");
		environment[i] = at;
	}
	for (char *c = text; (c = strchr(c, '\n')) != NULL; c++)
		*c = '\0';
	if (env_limits_read(environment, &l, &e) < 0) {
		assert(e.code == HM_EINVAL && strchr(e.msg, '=') != NULL);
		return 0;
	}
	for (unsigned i = 0; i <= HM_MAX_CARDS; i++) {
		assert(env_cores_of(&l, i) >= 1 && env_cores_of(&l, i) <= 100);
		assert(env_memory_of(&l, i) < UINT64_C(1) << 48);
		assert(l.any || (env_cores_of(&l, i) == 100 && env_memory_of(&l, i) == 0));
		assert(l.any_cores || env_cores_of(&l, i) == 100);
	}
	assert(l.priority <= 1 && l.policy <= LIMIT_POLICY_DISABLE);
	return 0;
}
