#include "check.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/num.h"

static unsigned broken;

static const char *name_of(CUresult code)
{
	const char *name = NULL;

	return cuGetErrorName(code, &name) == CUDA_SUCCESS && name != NULL ? name : "?";
}

void check_ok(CUresult code, const char *call, const char *file, int line)
{
	if (code == CUDA_SUCCESS)
		return;
	printf("cannot: %s:%d: %s answered %d %s\n", file, line, call, code, name_of(code));
	exit(CHECK_CANNOT);
}

void check_supported(CUresult code, const char *call, const char *file, int line)
{
	if (code == CUDA_ERROR_NOT_SUPPORTED)
		check_not_available("%s is not supported here", call);
	check_ok(code, call, file, line);
}

void check_broken(const char *what, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	broken++;
	printf("broken: %s:%d: %s: ", file, line, what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

void check_not_available(const char *fmt, ...)
{
	va_list ap;

	printf("not available: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(broken > 0 ? CHECK_BROKEN : CHECK_NOT_AVAILABLE);
}

void check_need(const char *symbol)
{
	if (dlsym(RTLD_DEFAULT, symbol) == NULL)
		check_not_available("this driver has no %s", symbol);
}

static uint64_t number(const char *name)
{
	const char *text = getenv(name);
	uint64_t v = 0;

	if (text != NULL && !num_u64_str(text, INT64_MAX, &v)) {
		printf("cannot: %s=%s is not a number\n", name, text);
		exit(CHECK_CANNOT);
	}
	return v;
}

size_t check_limit(void)
{
	uint64_t v = number("HAMI_CHECK_LIMIT");

	if (v == 0) {
		printf("cannot: HAMI_CHECK_LIMIT is not set\n");
		exit(CHECK_CANNOT);
	}
	return (size_t)v;
}

unsigned check_cores(void)
{
	return (unsigned)HM_MIN(number("HAMI_CHECK_CORES"), UINT64_C(100));
}

size_t check_slack(void)
{
	return (size_t)number("HAMI_CHECK_SLACK");
}

bool check_same(size_t a, size_t b)
{
	return (a > b ? a - b : b - a) <= check_slack();
}

bool check_bare(void)
{
	return getenv("HAMI_CHECK_BARE") != NULL;
}

int check_result(void)
{
	return broken > 0 ? CHECK_BROKEN : CHECK_PASSED;
}

CUcontext check_use(int card)
{
	CUcontext ctx;
	int count = 0;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	if (card >= count)
		check_not_available("needs %d cards, there are %d", card + 1, count);
	OK(cuDevicePrimaryCtxRetain(&ctx, card));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

void check_use_with_pools(void)
{
	int there = 0;

	check_use(0);
	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
	if (there == 0)
		check_not_available("this card has no memory pools");
}

double check_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void check_sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}
