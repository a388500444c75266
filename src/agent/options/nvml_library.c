#include "agent/options/nvml_library.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fmt.h"
#include "core/macros.h"

static const char *const folders[] = {
	"/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64",     "/lib/x86_64-linux-gnu",     "/lib/aarch64-linux-gnu",
};

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The link as a process sees it whose root this is: absolute targets lead back into it. */
static bool follow(const char *root, const char *path, char out[PATH_MAX])
{
	char target[PATH_MAX], inside[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof target - 1);

	if (n <= 0 || target[0] != '/')
		return is_file(path) && realpath(path, out) != NULL;
	target[n] = '\0';
	return hm_fmt(inside, sizeof inside, "%s%s", root, target) < sizeof inside && is_file(inside) &&
	       realpath(inside, out) != NULL;
}

bool nvml_library_find(const char *root, char out[PATH_MAX])
{
	if (root == NULL || root[0] == '\0' || strcmp(root, "/") == 0)
		return false;
	for (size_t i = 0; i < HM_COUNT(folders); i++) {
		char path[PATH_MAX];

		if (hm_fmt(path, sizeof path, "%s%s/libnvidia-ml.so.1", root, folders[i]) < sizeof path &&
		    follow(root, path, out))
			return true;
	}
	return false;
}
