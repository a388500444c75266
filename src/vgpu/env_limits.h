/* HAMi's limits, for where no limit file is mounted: CUDA_DEVICE_MEMORY_LIMIT for all cards,
 * CUDA_DEVICE_MEMORY_LIMIT_<i> for card i in CUDA's order. docs/contracts/limits.md */
#ifndef HM_VGPU_ENV_LIMITS_H
#define HM_VGPU_ENV_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"
#include "core/err.h"

struct env_limits {
	uint64_t all;                /* 0: no limit */
	uint64_t card[HM_MAX_CARDS]; /* 0: as `all` */
	bool any;
};

/* A size: digits, then at most one of k, m, g in either case (1024, 1024^2, 1024^3). No sign, no leading 0 (others read
 * that as octal), nothing else; "0" is no limit. */
bool env_size(const char *text, uint64_t *out);

/* From the environment (entries "NAME=VALUE", NULL ends). -HM_EINVAL names the variable and its value. */
int env_limits_read(char *const *environment, struct env_limits *out, struct hm_err *e) HM_MUST_USE;

/* The value of a variable, or NULL. */
const char *env_find(char *const *environment, const char *name);

#endif
