/* Compiler attributes and the few macros that every folder uses. Safe anywhere: no includes of ours, no code. */
#ifndef HM_CORE_MACROS_H
#define HM_CORE_MACROS_H

#include <stddef.h>

#define HM_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#define HM_MUST_USE __attribute__((warn_unused_result))
#define HM_LIKELY(x) __builtin_expect(!!(x), 1)
#define HM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HM_UNUSED __attribute__((unused))

/* Number of elements of an array; a pointer does not compile. */
#define HM_COUNT(a)                                                                                                    \
	(sizeof(a) / sizeof((a)[0]) +                                                                                  \
	 0 * sizeof(char[1 - 2 * __builtin_types_compatible_p(__typeof__(a), __typeof__(&(a)[0]))]))

/* The struct that embeds `member`, from a pointer to the member. */
#define HM_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define HM_MIN(a, b)                                                                                                   \
	({                                                                                                             \
		__typeof__(a) hm_a_ = (a);                                                                             \
		__typeof__(b) hm_b_ = (b);                                                                             \
		hm_a_ < hm_b_ ? hm_a_ : hm_b_;                                                                         \
	})
#define HM_MAX(a, b)                                                                                                   \
	({                                                                                                             \
		__typeof__(a) hm_a_ = (a);                                                                             \
		__typeof__(b) hm_b_ = (b);                                                                             \
		hm_a_ > hm_b_ ? hm_a_ : hm_b_;                                                                         \
	})

#endif
