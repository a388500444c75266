/* What a path program says. Each runs alone, once bare and once with libvgpu, and is the same on a simulated node and
 * on a real card:
 *  - OK(call): the driver answers CUDA_SUCCESS, whoever is in between; else the program cannot say anything
 *  - HOLDS(x, ...): a promise of a limit; what fails is told, and the program goes on
 *  - NEED(symbol): the driver has this function
 * Environment: HAMI_CHECK_LIMIT bytes of each card, HAMI_CHECK_CORES percent (0: no compute limit), HAMI_CHECK_SLACK
 * bytes by which the driver's books may differ from ours (0 on a simulated node), HAMI_CHECK_BARE set: libvgpu is not
 * there. */
#ifndef HM_TESTS_CUDA_CHECK_H
#define HM_TESTS_CUDA_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "abi/cuda_api.h"
#include "abi/cuda_v1.h"
#include "core/macros.h"

#define MIB ((size_t)1 << 20)

enum check_status {
	CHECK_PASSED = 0,
	CHECK_BROKEN = 1,         /* a promise did not hold */
	CHECK_CANNOT = 2,         /* a call failed that has nothing to do with limits */
	CHECK_NOT_AVAILABLE = 77, /* this driver or card lacks it; why is said */
};

#define OK(call) check_ok((call), #call, __FILE__, __LINE__)
#define HOLDS(x, ...)                                                                                                  \
	do {                                                                                                           \
		if (!(x))                                                                                              \
			check_broken(#x, __FILE__, __LINE__, __VA_ARGS__);                                             \
	} while (0)
/* Every CUDA symbol is weak here (CMakeLists.txt): what this driver lacks must not be called. */
#define NEED(symbol) check_need(#symbol)

void check_ok(CUresult code, const char *call, const char *file, int line);
void check_broken(const char *what, const char *file, int line, const char *fmt, ...) HM_PRINTF(4, 5);
void check_need(const char *symbol);
_Noreturn void check_not_available(const char *fmt, ...) HM_PRINTF(1, 2);

/* As OK, where the device may lack it: NOT_SUPPORTED is "not available". */
#define SUPPORTED(call) check_supported((call), #call, __FILE__, __LINE__)
void check_supported(CUresult code, const char *call, const char *file, int line);

size_t check_limit(void);
unsigned check_cores(void);
size_t check_slack(void);
bool check_bare(void);

/* Equal, or as near as HAMI_CHECK_SLACK grants. */
bool check_same(size_t a, size_t b);

/* The exit status of a path that came to its end: passed, or broken. */
int check_result(void);

/* cuInit and card's primary context, current. Not available where there are fewer cards. */
CUcontext check_use(int card);
/* Card 0 so; not available where it has no memory pools. */
void check_use_with_pools(void);

/* Milliseconds of CLOCK_MONOTONIC. */
double check_now_ms(void);
void check_sleep_ms(unsigned ms);

#endif
