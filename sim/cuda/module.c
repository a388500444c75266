#include "sim/cuda/module.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"

enum { IMAGE_FILE_BYTES = 16 << 20 };

struct CUfunc_st *cu_function_get(const void *handle)
{
	return cu_handle_is(handle, CU_FUNCTION) ? (struct CUfunc_st *)handle : NULL;
}

void cu_module_clear(struct CUmod_st *m)
{
	for (unsigned i = 0; i < m->ptx.count; i++)
		cu_handle_remove(&m->functions[i]);
	cu_code_unload(&m->code);
	ptx_clear(&m->ptx);
}

/* Compiled code (ELF, fat binary) has no PTX that we could know by its text. */
static bool is_binary(const void *image)
{
	static const unsigned char elf[4] = { 0x7f, 'E', 'L', 'F' };
	static const unsigned char fat[4] = { 0x50, 0xed, 0x55, 0xba }, wrapped[4] = { 0xb1, 0x43, 0x62, 0x46 };

	/* Byte by byte: a short text ends before four bytes are there. */
	for (const unsigned char *const *magic = (const unsigned char *const[]) { elf, fat, wrapped, NULL };
	     *magic != NULL; magic++)
		if (strncmp(image, (const char *)*magic, 4) == 0)
			return true;
	return false;
}

static unsigned capability(unsigned device)
{
	return cu_info(device)->cc_major * 10 + cu_info(device)->cc_minor;
}

CUresult cu_module_fill(struct CUmod_st *m, const char *image, unsigned device)
{
	static const CUresult codes[] = {
		[PTX_OK] = CUDA_SUCCESS, [PTX_BAD] = CUDA_ERROR_INVALID_PTX, [PTX_NO_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY
	};

	if (is_binary(image))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	size_t n = strlen(image);
	CUresult rc = n == 0 ? CUDA_ERROR_INVALID_IMAGE : codes[ptx_read(image, n, &m->ptx)];

	if (rc != CUDA_SUCCESS)
		return rc;
	if (m->ptx.target > capability(device)) {
		cu_module_clear(m);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	for (unsigned i = 0; i < m->ptx.count; i++) {
		m->functions[i] = (struct CUfunc_st) { .module = m, .entry = &m->ptx.entries[i] };
		if (!cu_handle_add(&m->functions[i], CU_FUNCTION)) {
			cu_module_clear(m);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult load(CUmodule *out, const void *image)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || image == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct CUmod_st *m = calloc(1, sizeof *m);

	if (m == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	m->ctx = ctx;
	rc = cu_module_fill(m, image, ctx->device);
	if (rc == CUDA_SUCCESS) {
		rc = cu_code_load(&m->ptx, ctx, &m->code);
		if (rc != CUDA_SUCCESS)
			cu_module_clear(m);
	}
	if (rc == CUDA_SUCCESS && !cu_handle_add(m, CU_MODULE)) {
		cu_module_clear(m);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		free(m);
		return cu_leave(rc);
	}
	link_append(&ctx->modules, &m->link);
	*out = m;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	return load(out, image);
}

CU_EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count HM_UNUSED,
				      CUjit_option *options HM_UNUSED, void **values HM_UNUSED)
{
	return load(out, image);
}

/* Its text again, as images of other forms are not modelled. */
CU_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
	return load(out, image);
}

char *cu_image_read(const char *path, CUresult *rc)
{
	hm_auto_fd fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	hm_auto_heap char *text = NULL;
	struct stat st;

	*rc = path == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_FILE_NOT_FOUND;
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return NULL;
	*rc = st.st_size <= IMAGE_FILE_BYTES ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
	if (st.st_size > IMAGE_FILE_BYTES || (text = calloc(1, (size_t)st.st_size + 1)) == NULL)
		return NULL;
	*rc = CUDA_ERROR_INVALID_IMAGE;
	if (read(fd, text, (size_t)st.st_size) != st.st_size)
		return NULL;
	return HM_STEAL(text);
}

CU_EXPORT CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	CUresult rc;
	hm_auto_heap char *text = cu_image_read(path, &rc);

	return text != NULL ? load(out, text) : rc;
}

static void module_free(struct CUmod_st *m)
{
	cu_module_clear(m);
	cu_handle_remove(m);
	link_remove(&m->link);
	free(m);
}

void cu_modules_drop(struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&ctx->modules, it)
		module_free(HM_CONTAINER(it, struct CUmod_st, link));
}

/* Takes the lock and looks a module up; a library's module too. */
static CUresult enter_module(CUmodule m)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(m, CU_MODULE) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_HANDLE);
}

CU_EXPORT CUresult cuModuleUnload(CUmodule m)
{
	CUresult rc = enter_module(m);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (m->library != NULL)
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	rc = cu_capture_guard();
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	(void)cu_wait(m->ctx, m->ctx->last_ticket); /* a lost card has no work to wait for */
	if (cu_handle_is(m, CU_MODULE))
		module_free(m);
	return cu_leave(CUDA_SUCCESS);
}

CUresult cu_function_find(const struct CUmod_st *m, const char *name, struct CUfunc_st **out)
{
	for (unsigned i = 0; i < m->ptx.count; i++)
		if (strcmp(m->functions[i].entry->name, name) == 0) {
			*out = (struct CUfunc_st *)&m->functions[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CU_EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
	if (out == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_module(m);

	return rc == CUDA_SUCCESS ? cu_leave(cu_function_find(m, name, out)) : rc;
}

unsigned cu_functions_list(struct CUmod_st *m, const void **out, unsigned room)
{
	unsigned n = HM_MIN(room, m->ptx.count);

	for (unsigned i = 0; i < n; i++)
		out[i] = &m->functions[i];
	return n;
}

CU_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned count, CUmodule m)
{
	if (out == NULL || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_module(m);

	if (rc == CUDA_SUCCESS)
		cu_functions_list(m, (const void **)out, count);
	return rc == CUDA_SUCCESS ? cu_leave(rc) : rc;
}

CU_EXPORT CUresult cuModuleGetFunctionCount(unsigned *out, CUmodule m)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_module(m);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = m->ptx.count;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuModuleGetLoadingMode(int *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*out = 1; /* eager: code is looked at when it is loaded */
	return CUDA_SUCCESS;
}
