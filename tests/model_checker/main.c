/* model-checker [--seed=N] [--episodes=N] [--seconds=N] [--trace]: random things happen to a small cluster, and after
 * each the scheduler's memory is compared with what an oracle counts from scratch; a promise may never sell a card
 * twice or break a quota, a refusal must be right, and nothing may stay held when all has come to rest. Ends with 1
 * where something is wrong, with the episode that shows it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/options.h"
#include "model_checker/actions.h"
#include "model_checker/oracle.h"

enum { STEPS = 250, WITH_FGD = 5 };

/* True: nothing was wrong. */
static bool episode(struct world *w, uint64_t seed, uint64_t *steps)
{
	struct subject s;

	world_init(w, seed);
	subject_init(&s, seed % WITH_FGD == 0);
	restart(w, &s);
	for (int i = 0; i < STEPS && w->wrong.n == 0; i++) {
		act(w, &s);
		oracle_check_belief(w);
		subject_compare(w, &s);
		(*steps)++;
	}
	subject_fini(&s);
	return w->wrong.n == 0;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, episodes = 0, most_seconds = 0, steps = 0, n = 0;
	bool trace = false;
	const struct option_spec specs[] = {
		{ .name = "seed",
		  .kind = OPTION_U64,
		  .value = &seed,
		  .max = UINT64_MAX,
		  .help = "the first episode's dice" },
		{ .name = "episodes",
		  .kind = OPTION_U64,
		  .value = &episodes,
		  .max = UINT64_MAX,
		  .help = "0: as many as --seconds allow" },
		{ .name = "seconds",
		  .kind = OPTION_U64,
		  .value = &most_seconds,
		  .max = 1000000,
		  .help = "0: no limit" },
		{ .name = "trace", .kind = OPTION_BOOL, .value = &trace, .help = "say all that happens" },
	};
	double start = seconds();
	struct hm_err e;
	int first, r = options_parse(specs, HM_COUNT(specs), argc, argv, &first, &e);

	if (r == OPTIONS_HELP) {
		options_print_help("model-checker [options]", specs, HM_COUNT(specs));
		return 0;
	}
	if (r < 0 || first < argc || (episodes == 0 && most_seconds == 0)) {
		fprintf(stderr, "model-checker: %s\n", r < 0 ? e.msg : "--episodes or --seconds must say when to end");
		return 2;
	}
	while ((episodes == 0 || n < episodes) && (most_seconds == 0 || seconds() - start < (double)most_seconds)) {
		struct world w = { .trace = trace };
		bool good = episode(&w, seed + n, &steps);
		if (!good && !trace) {
			world_fini(&w);
			w = (struct world) { .trace = true };
			episode(&w, seed + n, &steps);
		}
		world_fini(&w);
		if (!good) {
			printf("model-checker: wrong after %llu steps, %.1f s; again with --seed=%llu --episodes=1\n",
			       (unsigned long long)steps, seconds() - start, (unsigned long long)(seed + n));
			return 1;
		}
		n++;
	}
	printf("model-checker: %llu steps in %llu episodes from seed %llu, nothing wrong, %.1f s\n",
	       (unsigned long long)steps, (unsigned long long)n, (unsigned long long)seed, seconds() - start);
	return 0;
}
