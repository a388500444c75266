#include "harness/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
/* Visible, since ld takes a shared library's need of malloc for one of __wrap_malloc; at run time it is not. */
#pragma GCC visibility push(default)
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
#pragma GCC visibility pop

enum { MAX_LIVE = 65536 };

static struct {
	bool armed, hit;
	size_t calls, fail_at; /* fail_at 0: none */
	size_t live;
	void *blocks[MAX_LIVE]; /* only blocks made while armed count: memory of libraries passes through free too */
} state;

static bool may_allocate(void)
{
	if (!state.armed)
		return true;
	if (++state.calls != state.fail_at)
		return true;
	state.hit = true;
	return false;
}

static size_t place_of(const void *p)
{
	return ((uintptr_t)p >> 4) % MAX_LIVE;
}

static void *made(void *p)
{
	if (state.armed && p != NULL && state.live < MAX_LIVE / 2) {
		size_t at = place_of(p);

		while (state.blocks[at] != NULL && state.blocks[at] != (void *)1)
			at = (at + 1) % MAX_LIVE;
		state.blocks[at] = p;
		state.live++;
	}
	return p;
}

static void gone(const void *p)
{
	if (p == NULL || state.live == 0)
		return;
	for (size_t at = place_of(p), n = 0; n < MAX_LIVE && state.blocks[at] != NULL; at = (at + 1) % MAX_LIVE, n++) {
		if (state.blocks[at] == p) {
			state.blocks[at] = (void *)1;
			state.live--;
			return;
		}
	}
}

void *__wrap_malloc(size_t n)
{
	return may_allocate() ? made(__real_malloc(n)) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return may_allocate() ? made(__real_calloc(n, size)) : NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
	void *moved;

	if (!may_allocate())
		return NULL;
	moved = __real_realloc(p, n);
	if (moved != NULL) {
		gone(p);
		made(moved);
	}
	return moved;
}

void __wrap_free(void *p)
{
	gone(p);
	__real_free(p);
}

char *__wrap_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = __wrap_malloc(len + 1);

	if (copy != NULL) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, strlen(s));
}

static int run_once(sweep_scenario scenario, void *arg, size_t fail_at)
{
	int r;

	memset(&state, 0, sizeof state);
	state.fail_at = fail_at;
	state.armed = true;
	r = scenario(arg);
	state.armed = false;
	return r;
}

bool sweep_once(sweep_scenario scenario, void *arg, size_t nth)
{
	(void)run_once(scenario, arg, nth);
	return state.hit;
}

struct sweep_result sweep_run(sweep_scenario scenario, void *arg)
{
	struct sweep_result result = { 0 };

	result.failed = run_once(scenario, arg, 0) != 0;
	result.allocations = state.calls;
	result.leaked = state.live;
	for (size_t n = 1; n <= result.allocations && result.leaked == 0; n++) {
		int r = run_once(scenario, arg, n);

		if (state.hit && r == 0)
			result.swallowed++;
		if (state.live > 0) {
			result.leaked = state.live;
			result.leaked_at = n;
		}
	}
	return result;
}

void sweep_check(const char *name, sweep_scenario scenario, void *arg)
{
	struct sweep_result r = sweep_run(scenario, arg);

	if (r.failed)
		fail_msg("sweep %s: the undisturbed run failed", name);
	if (r.allocations == 0)
		fail_msg("sweep %s: the scenario allocates nothing", name);
	if (r.leaked > 0)
		fail_msg("sweep %s: %zu blocks leaked when allocation %zu of %zu failed", name, r.leaked, r.leaked_at,
			 r.allocations);
	if (r.swallowed > 0)
		fail_msg("sweep %s: %zu failed allocations went unreported", name, r.swallowed);
}
