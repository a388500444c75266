/* Allocation-failure sweep: runs a scenario once to count its allocations, then once more for each of them with that
 * one failing. After each run nothing may be left allocated. Works on the program's own code (ld --wrap), not on
 * libraries. Every unit test can use it; it costs nothing while unarmed. */
#ifndef HM_TESTS_HARNESS_SWEEP_H
#define HM_TESTS_HARNESS_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

/* Does its work and frees it all. Returns 0 when the work succeeded, negative when it reported failure; anything else
 * it has to say it asserts itself (nothing half done). */
typedef int (*sweep_scenario)(void *arg);

struct sweep_result {
	size_t allocations; /* of the undisturbed run */
	size_t leaked;      /* blocks left by the first run that left any */
	size_t leaked_at;   /* that run: N of "fail the Nth", 0 for the undisturbed one */
	size_t swallowed;   /* runs in which an allocation failed and the scenario still returned 0 */
	bool failed;        /* the undisturbed run did not return 0 */
};

struct sweep_result sweep_run(sweep_scenario scenario, void *arg);

/* One run with the nth allocation failing; false where it made fewer. */
bool sweep_once(sweep_scenario scenario, void *arg, size_t nth);

/* sweep_run and cmocka assertions: undisturbed run succeeds, nothing leaks, no failed allocation is swallowed. */
void sweep_check(const char *name, sweep_scenario scenario, void *arg);

#endif
