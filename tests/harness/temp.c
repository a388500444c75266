#include "harness/temp.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/unit.h"

static char folder[256];

int temp_setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof folder, "%s/hami-test.XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

int temp_teardown(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *temp_path(const char *name)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], *name != '\0' ? "%s/%s" : "%s", folder, name);
	return path;
}

void temp_write(const char *name, const char *text)
{
	FILE *f = fopen(temp_path(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

bool temp_exists(const char *name)
{
	struct stat st;

	return lstat(temp_path(name), &st) == 0;
}

int temp_count(const char *name)
{
	DIR *d = opendir(temp_path(name));
	int n = 0;

	if (d == NULL)
		return -1;
	for (struct dirent *entry; (entry = readdir(d)) != NULL;)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(d);
	return n;
}
