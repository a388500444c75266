/* A folder of its own for a test, and paths in it. */
#ifndef HM_TESTS_HARNESS_TEMP_H
#define HM_TESTS_HARNESS_TEMP_H

#include <stdbool.h>

/* cmocka's setup and teardown: make a folder below TMPDIR (default /tmp), and remove it with all in it. */
int temp_setup(void **state);
int temp_teardown(void **state);

/* "<folder>/<name>", the folder itself for ""; good for the next 8 calls. */
const char *temp_path(const char *name);
void temp_write(const char *name, const char *text);
bool temp_exists(const char *name);
/* Entries in the folder <name> ("" for the test's own), . and .. not counted; -1 where it is none. */
int temp_count(const char *name);

#endif
