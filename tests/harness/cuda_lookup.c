/* cuda-lookup: what a CUDA driver answers to cuGetProcAddress, by the names of the functions it hands out.
 *
 *     cuda-lookup          reads "base name,version,flags" lines; writes "<exported name or NULL> <status> <code>"
 *     cuda-lookup --call   reads exported names; calls each by dlsym with arguments that are all 0, writes the codes
 *
 * With LD_PRELOAD the names are those of the library that answers. Exit status: 0, 1 without CUDA, 2 usage. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda_api.h"
#include "core/num.h"

static const char *name_of(void *address)
{
	Dl_info info;

	if (address == NULL)
		return "NULL";
	return dladdr(address, &info) != 0 && info.dli_sname != NULL && info.dli_saddr == address ? info.dli_sname
												  : "?";
}

/* A decimal number, negative ones too; what is none is 0. */
static long long number(const char *text)
{
	bool negative = *text == '-';
	uint64_t v = 0;

	return num_u64_str(text + negative, INT64_MAX, &v) && negative ? -(long long)v : (long long)v;
}

static void look(__typeof__(&cuGetProcAddress_v2) get, char *line)
{
	char *version = strchr(line, ','), *flags = version != NULL ? strchr(version + 1, ',') : NULL;
	CUdriverProcAddressQueryResult status = -1;
	void *address = (void *)&status; /* must be overwritten */

	if (flags == NULL) {
		printf("? bad line\n");
		return;
	}
	*version = *flags = '\0';
	CUresult rc = get(line, &address, (int)number(version + 1), (cuuint64_t)number(flags + 1), &status);

	printf("%s %d %d\n", rc == CUDA_SUCCESS ? name_of(address) : "-", status, rc);
}

static void call(void *handle, const char *name)
{
	void *address = dlsym(handle, name);
	CUresult (*f)(long, long, long, long, long, long, long, long, long, long, long, long);

	if (address == NULL) {
		printf("missing\n");
		return;
	}
	memcpy(&f, &address, sizeof f);
	printf("%d\n", f(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

int main(int argc, char **argv)
{
	int calls = argc == 2 && strcmp(argv[1], "--call") == 0;
	void *handle, *address;
	__typeof__(&cuGetProcAddress_v2) get;
	char line[256];

	if (argc > 1 && !calls)
		return 2;
	handle = dlopen("libcuda.so.1", RTLD_NOW);
	address = handle != NULL ? dlsym(handle, "cuGetProcAddress_v2") : NULL;
	if (address == NULL)
		return 1;
	memcpy(&get, &address, sizeof get);
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (calls)
			call(handle, line);
		else
			look(get, line);
		fflush(stdout);
	}
	return 0;
}
