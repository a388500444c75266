#include "harness/mounts.h"

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"

const char *mounts_line(const char *path, const char *at)
{
	static char line[2048];
	static unsigned id = 40;
	char command[600], device[32], root[512], target[512];
	FILE *f;

	snprintf(command, sizeof command, "findmnt -n -o MAJ:MIN,FSROOT,TARGET -T '%s'", path);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%31s %511s %511s", device, root, target), 3);
	assert_int_equal(pclose(f), 0);
	snprintf(line, sizeof line, "%u 1 %s %s%s %s ro,nosuid master:1 - ext4 /dev/x rw\n", id++, device,
		 strcmp(root, "/") == 0 ? "" : root, path + (strcmp(target, "/") == 0 ? 0 : strlen(target)), at);
	return line;
}
