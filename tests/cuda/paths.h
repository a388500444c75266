/* The paths, by topic: each topic's file ends with its table. A NULL name ends a table. */
#ifndef HM_TESTS_CUDA_PATHS_H
#define HM_TESTS_CUDA_PATHS_H

#include "child.h"

enum path_bare {
	BARE_BREAKS, /* without libvgpu the same program must find a promise broken */
	BARE_PASSES, /* it asks only that nothing is in a program's way */
};

struct path {
	const char *name;
	void (*run)(void);
	enum path_bare bare;
};

extern const struct path paths_linear[], paths_pool[], paths_pool_sync[], paths_graph[], paths_vmm[], paths_array[],
	paths_array_map[], paths_share[], paths_context[], paths_code[], paths_process[], paths_view[], paths_launch[],
	paths_lookup[], paths_seen[], paths_loader[];
extern const struct role roles_share[], roles_process[], roles_launch[], roles_pool_sync[], roles_seen[];

#endif
