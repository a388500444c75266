/* A card that time-slices between processes, hosts that launch, run ahead and synchronise, and containers with a share
 * each, on a clock that stands still while anyone acts: the real gate, bucket and estimates against it. */
#ifndef HM_TESTS_CARD_MODEL_H
#define HM_TESTS_CARD_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_PROCESSES = 8, MODEL_CONTAINERS = 4, MODEL_KINDS = 5, MODEL_WINDOWS = 64 };

struct model_process {
	unsigned container;
	unsigned us[MODEL_KINDS]; /* lengths of its kernels, drawn at random; 0 ends the list */
	unsigned sync;            /* the host waits for the card after so many; 0: never */
	uint64_t killed_us;       /* never comes back after that; 0: lives */
};

struct model {
	unsigned share[MODEL_CONTAINERS]; /* percent; 100: no limit; 0 ends the list */
	struct model_process processes[MODEL_PROCESSES];
	bool one_kind; /* all lengths under one key, as one kernel with different arguments */
	unsigned sample_ms, lag_ms, noise_points; /* the driver's samples; 0: none */
	unsigned seconds;
};

/* In percent of the card, of the time after the first second. */
struct model_result {
	double mean[MODEL_CONTAINERS], low[MODEL_CONTAINERS], high[MODEL_CONTAINERS]; /* low, high: of windows of 2 s */
	double total;
};

struct model_result model_run(const struct model *m);

#endif
