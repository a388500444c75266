/* HAMi's limits, for where no limit file is mounted: CUDA_DEVICE_MEMORY_LIMIT and CUDA_DEVICE_SM_LIMIT for all cards,
 * each with _<i> for card i in CUDA's order, and what goes with them. docs/contracts/limits.md */
#ifndef HM_VGPU_ENV_LIMITS_H
#define HM_VGPU_ENV_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"
#include "core/err.h"
#include "region/limit_file.h"

struct env_limits {
	uint64_t all;                 /* 0: no limit */
	uint64_t card[HM_MAX_CARDS];  /* 0: as `all` */
	uint64_t all_cores;           /* percent; 0, and 100 and up: no limit */
	uint64_t cores[HM_MAX_CARDS]; /* 0: as `all_cores` */
	bool any, any_cores;          /* a limit of anything; one of compute */
	unsigned priority;            /* as in the limit file, and so are these */
	enum limit_policy policy;
	bool oversubscribe;
};

/* A size: digits, then at most one of k, m, g in either case (1024, 1024^2, 1024^3). No sign, no leading 0 (others read
 * that as octal), nothing else; "0" is no limit. */
bool env_size(const char *text, uint64_t *out);

/* From the environment (entries "NAME=VALUE", NULL ends). -HM_EINVAL names the variable and its value. Where no limit
 * is set the other variables are not looked at. */
int env_limits_read(char *const *environment, struct env_limits *out, struct hm_err *e) HM_MUST_USE;

/* What card `ordinal` of CUDA's order may use: bytes (0: no limit), and percent of its time (1 to 100). */
uint64_t env_memory_of(const struct env_limits *l, unsigned ordinal);
unsigned env_cores_of(const struct env_limits *l, unsigned ordinal);

/* The value of a variable, or NULL. */
const char *env_find(char *const *environment, const char *name);

#endif
