/* spawn_bench ROUNDS SPAWNS PRELOAD PROGRAM [ARGUMENT...]: how long a program's start and end take, without and with
 * PRELOAD in LD_PRELOAD, in turns. Prints one line of JSON: the median over the rounds, microseconds a start. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "core/num.h"

enum { MAX_ROUNDS = 101 };

extern char **environ;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* Microseconds a start; negative where one failed. */
static double spawn_many(uint64_t count, char **argv)
{
	double before = now_us();

	for (uint64_t i = 0; i < count; i++) {
		pid_t child;
		int status;

		errno = posix_spawn(&child, argv[0], NULL, NULL, argv, environ);
		if (errno != 0)
			return -1;
		while (waitpid(child, &status, 0) < 0)
			if (errno != EINTR)
				return -1;
		if (status != 0)
			return -1;
	}
	return (now_us() - before) / (double)count;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof *values, by_value);
	return values[n / 2];
}

int main(int argc, char **argv)
{
	static double without[MAX_ROUNDS], with[MAX_ROUNDS];
	uint64_t rounds, spawns;

	if (argc < 5 || !num_u64_str(argv[1], MAX_ROUNDS, &rounds) || !num_u64_str(argv[2], 1000000, &spawns) ||
	    rounds == 0 || spawns == 0) {
		fprintf(stderr, "usage: spawn_bench ROUNDS SPAWNS PRELOAD PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	for (uint64_t r = 0; r < rounds; r++) {
		unsetenv("LD_PRELOAD");
		without[r] = spawn_many(spawns, argv + 4);
		setenv("LD_PRELOAD", argv[3], 1);
		with[r] = spawn_many(spawns, argv + 4);
		if (without[r] < 0 || with[r] < 0) {
			unsetenv("LD_PRELOAD");
			fprintf(stderr, "spawn_bench: %s did not start or did not end with 0 (%s the preload)\n",
				argv[4], without[r] < 0 ? "without" : "with");
			return 1;
		}
	}
	unsetenv("LD_PRELOAD");
	printf("{\"without_us\": %.2f, \"with_us\": %.2f}\n", median(without, rounds), median(with, rounds));
	return 0;
}
