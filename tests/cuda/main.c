/* cuda-path NAME: one way to get memory or time of a card, tried to its limit (check.h says how it answers).
 * cuda-path --list: the names, each with "breaks" or "passes": how it ends without libvgpu. */
#include <limits.h>
#include <string.h>

#include "books.h"
#include "check.h"
#include "core/num.h"
#include "paths.h"

static const struct path *const tables[] = { paths_linear,  paths_pool,   paths_pool_sync, paths_graph,
					     paths_vmm,     paths_array,  paths_array_map, paths_share,
					     paths_context, paths_code,   paths_process,   paths_view,
					     paths_launch,  paths_lookup, paths_seen,      paths_loader };
static const struct role *const role_tables[] = { roles_share, roles_process, roles_launch, roles_pool_sync,
						  roles_seen };

static int list(void)
{
	for (size_t t = 0; t < HM_COUNT(tables); t++)
		for (const struct path *p = tables[t]; p->name != NULL; p++)
			printf("%s %s\n", p->name, p->bare == BARE_PASSES ? "passes" : "breaks");
	return 0;
}

static int run_role(const char *name, const char *number)
{
	uint64_t sock = 0;

	if (!num_u64_str(number, INT_MAX, &sock))
		return CHECK_CANNOT;
	for (size_t t = 0; t < HM_COUNT(role_tables); t++)
		for (const struct role *r = role_tables[t]; r->name != NULL; r++)
			if (strcmp(r->name, name) == 0) {
				r->run((int)sock);
				return check_result();
			}
	return CHECK_CANNOT;
}

static int run_path(const char *name)
{
	for (size_t t = 0; t < HM_COUNT(tables); t++)
		for (const struct path *p = tables[t]; p->name != NULL; p++)
			if (strcmp(p->name, name) == 0) {
				books_open();
				p->run();
				return check_result();
			}
	fprintf(stderr, "cuda-path: no path is called %s\n", name);
	return CHECK_CANNOT;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	if (argc == 2 && strcmp(argv[1], "--books") == 0)
		return books_main();
	if (argc == 4 && strcmp(argv[1], "--role") == 0)
		return run_role(argv[2], argv[3]);
	if (argc == 2)
		return run_path(argv[1]);
	fprintf(stderr, "usage: cuda-path NAME | --list\n");
	return CHECK_CANNOT;
}
