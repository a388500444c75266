/* Code and the variables that come with it: charged by measurement, and refused where they do not fit. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "books.h"
#include "fill.h"
#include "paths.h"
#include "views.h"

/* A module with a variable of so many bytes; and the file with the same text. */
static char text[512];
static char file[sizeof "/tmp/hami-check-XXXXXX"];

static void write_module(size_t bytes)
{
	int n = snprintf(text, sizeof text,
			 ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 big[%zu];\n"
			 ".visible .entry busy_ns(.param .u64 ns)\n{\n\tret;\n}\n",
			 bytes);
	int fd;

	memcpy(file, "/tmp/hami-check-XXXXXX", sizeof file);
	fd = mkstemp(file);

	if (fd < 0 || write(fd, text, (size_t)n) != n) {
		printf("cannot: %s cannot be written\n", file);
		exit(CHECK_CANNOT);
	}
	close(fd);
}

/* Where a driver loads lazily, the address of the variable brings it. */
static CUresult with_variable(CUresult rc, CUmodule m)
{
	CUdeviceptr p;
	size_t bytes;

	if (rc == CUDA_SUCCESS) {
		rc = cuModuleGetGlobal_v2(&p, &bytes, m, "big");
		if (rc != CUDA_SUCCESS)
			OK(cuModuleUnload(m));
	}
	return rc;
}
static CUresult module_data(void **out)
{
	CUresult rc = cuModuleLoadData((CUmodule *)out, text);

	return with_variable(rc, *out);
}
static CUresult module_data_ex(void **out)
{
	CUresult rc = cuModuleLoadDataEx((CUmodule *)out, text, 0, NULL, NULL);

	return with_variable(rc, *out);
}
static CUresult module_fat(void **out)
{
	return cuModuleLoadFatBinary((CUmodule *)out, text);
}
static CUresult module_file(void **out)
{
	CUresult rc = cuModuleLoad((CUmodule *)out, file);

	return with_variable(rc, *out);
}
static CUresult module_unload(void *what)
{
	return cuModuleUnload(what);
}

/* A library's code comes with the first use of a kernel in a context. */
static CUresult use_library(CUlibrary library)
{
	CUkernel kernel;
	CUfunction function;

	OK(cuLibraryGetKernel(&kernel, library, "busy_ns"));
	CUresult rc = cuKernelGetFunction(&function, kernel);

	if (rc != CUDA_SUCCESS)
		OK(cuLibraryUnload(library));
	return rc;
}
static CUresult library_data(void **out)
{
	CUresult rc = cuLibraryLoadData((CUlibrary *)out, text, NULL, NULL, 0, NULL, NULL, 0);

	return rc == CUDA_SUCCESS ? use_library(*out) : rc;
}
static CUresult library_file(void **out)
{
	CUresult rc = cuLibraryLoadFromFile((CUlibrary *)out, file, NULL, NULL, 0, NULL, NULL, 0);

	return rc == CUDA_SUCCESS ? use_library(*out) : rc;
}
/* No function is asked for: the kernel itself is launched, and its code comes with it. */
static CUresult launch_of(CUlibrary library, CUkernel kernel)
{
	cuuint64_t ns = 1000;

	CUresult rc = cuLaunchKernel((CUfunction)(void *)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]) { &ns }, NULL);

	OK(cuCtxSynchronize());
	if (rc != CUDA_SUCCESS)
		OK(cuLibraryUnload(library));
	return rc;
}
static CUresult library_launch(void **out)
{
	CUkernel kernel = NULL;

	OK(cuLibraryLoadData((CUlibrary *)out, text, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, *out, "busy_ns"));
	return launch_of(*out, kernel);
}
static CUresult library_launch_listed(void **out)
{
	CUkernel kernel = NULL;

	OK(cuLibraryLoadData((CUlibrary *)out, text, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryEnumerateKernels(&kernel, 1, *out));
	return launch_of(*out, kernel);
}
/* The address of a variable brings its memory. */
static CUresult library_variable(void **out)
{
	CUdeviceptr p;
	size_t bytes;

	OK(cuLibraryLoadData((CUlibrary *)out, text, NULL, NULL, 0, NULL, NULL, 0));
	CUresult rc = cuLibraryGetGlobal(&p, &bytes, *out, "big");

	if (rc != CUDA_SUCCESS)
		OK(cuLibraryUnload(*out));
	return rc;
}
/* The function's code is asked for in so many words. */
static CUresult library_function_load(void **out)
{
	CUfunction function;
	CUmodule module;

	OK(cuLibraryLoadData((CUlibrary *)out, text, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetModule(&module, *out));
	OK(cuModuleGetFunction(&function, module, "busy_ns"));
	CUresult rc = cuFuncLoad(function);

	if (rc != CUDA_SUCCESS)
		OK(cuLibraryUnload(*out));
	return rc;
}
static CUresult library_unload(void *what)
{
	return cuLibraryUnload(what);
}

/* What the driver loads at a first use is charged by the next measurement, which is at most half a second away. */
enum { MEASURED_MS = 500 };

static void measured(bool lazily)
{
	size_t free_bytes = 1, total = 0;

	for (int i = 0; lazily && !check_bare() && i < MEASURED_MS / 20; i++) {
		OK(cuMemGetInfo_v2(&free_bytes, &total));
		if (free_bytes == 0 || total - free_bytes + check_slack() >= books_held(0))
			return;
		check_sleep_ms(20);
	}
}

static void expect_refusal(CUresult (*load)(void **), CUresult (*unload)(void *), bool lazily)
{
	CUdeviceptr p;
	void *m;
	CUresult rc = load(&m);

	if (!lazily)
		HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "code that does not fit: %d", rc);
	measured(lazily);
	CUresult more = cuMemAlloc_v2(&p, 2 * MIB);

	HOLDS(rc != CUDA_SUCCESS || more == CUDA_ERROR_OUT_OF_MEMORY, "an allocation beside code that did not fit: %d",
	      more);
	if (more == CUDA_SUCCESS)
		OK(cuMemFree_v2(p));
	if (rc == CUDA_SUCCESS)
		OK(unload(m));
}

static void code(CUresult (*load)(void **), CUresult (*unload)(void *), bool at_first_use)
{
	bool lazily = at_first_use || check_slack() > 0; /* a real driver may load anything lazily */
	size_t bytes = fill_piece();
	CUdeviceptr p;
	void *m;

	write_module(bytes);
	check_use(0);
	/* What the first module brings along that stays. */
	SUPPORTED(load(&m));
	OK(unload(m));
	OK(cuCtxSynchronize());
	size_t start = views_used(0), held = books_held(0);

	OK(load(&m));
	measured(lazily);
	size_t with = views_match_books(0);

	HOLDS(with >= start + bytes, "a variable of %zu is charged %zu", bytes, with - start);
	fill_expect_room(0);
	OK(unload(m));
	HOLDS(books_settle(0, held) <= held + check_slack(), "the driver still has %zu", books_held(0));
	HOLDS(check_same(views_match_books(0), start), "unloaded: %zu", views_used(0) - start);
	OK(cuMemAlloc_v2(&p, (check_limit() - start) / (2 * MIB) * 2 * MIB - bytes / 2));
	expect_refusal(load, unload, lazily);
	OK(cuMemFree_v2(p));
	HOLDS(check_same(views_match_books(0), start), "in the end: %zu", views_used(0) - start);
	(void)unlink(file);
}

static void run_module_data(void)
{
	code(module_data, module_unload, false);
}
static void run_module_data_ex(void)
{
	code(module_data_ex, module_unload, false);
}
/* A simulated driver takes text for it; a real one wants a fat binary, which no compiler is here to make. */
static void run_module_fat(void)
{
	CUmodule m;

	write_module(8);
	(void)unlink(file);
	check_use(0);
	if (module_fat((void **)&m) != CUDA_SUCCESS)
		check_not_available("this driver takes no text for a fat binary");
	OK(cuModuleUnload(m));
	code(module_fat, module_unload, false);
}
static void run_module_file(void)
{
	code(module_file, module_unload, false);
}
static void run_library_data(void)
{
	NEED(cuLibraryLoadData);
	code(library_data, library_unload, true);
}
static void run_library_file(void)
{
	NEED(cuLibraryLoadFromFile);
	code(library_file, library_unload, true);
}
static void run_library_launch(void)
{
	NEED(cuLibraryGetKernel);
	code(library_launch, library_unload, true);
}
static void run_library_launch_listed(void)
{
	NEED(cuLibraryEnumerateKernels);
	code(library_launch_listed, library_unload, true);
}
static void run_library_variable(void)
{
	NEED(cuLibraryGetGlobal);
	code(library_variable, library_unload, true);
}
static void run_function_load(void)
{
	NEED(cuFuncLoad);
	code(library_function_load, library_unload, false);
}

const struct path paths_code[] = {
	{ "module-data", run_module_data, BARE_BREAKS },
	{ "module-data-options", run_module_data_ex, BARE_BREAKS },
	{ "module-fat-binary", run_module_fat, BARE_BREAKS },
	{ "module-file", run_module_file, BARE_BREAKS },
	{ "library-data", run_library_data, BARE_BREAKS },
	{ "library-file", run_library_file, BARE_BREAKS },
	{ "library-launch", run_library_launch, BARE_BREAKS },
	{ "library-launch-listed", run_library_launch_listed, BARE_BREAKS },
	{ "library-variable", run_library_variable, BARE_BREAKS },
	{ "function-load", run_function_load, BARE_BREAKS },
	{ 0 },
};
