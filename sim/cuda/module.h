/* Modules, libraries and the functions in them. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_MODULE_H
#define HM_SIM_CUDA_MODULE_H

#include "sim/cuda/ptx.h"
#include "sim/cuda/state.h"

struct cu_region;

/* What the launch calls of CUDA 2 have set beforehand. */
struct cu_old_launch {
	unsigned block[3], shared_bytes, param_bytes;
	unsigned char params[PTX_PARAMS * sizeof(uint64_t)];
};

struct CUfunc_st {
	struct CUmod_st *module;
	const struct ptx_entry *entry;
	unsigned max_dynamic_shared; /* cuFuncSetAttribute */
	struct cu_old_launch old;
};

/* What a module takes in a context: code, and its variables. */
struct cu_code {
	struct CUctx_st *ctx; /* NULL: not loaded */
	uint64_t code_bytes;
	struct cu_region *variables; /* NULL: it has none */
};

/* A library in one context, from the first use there. */
struct cu_loaded {
	struct link link; /* on its context's list */
	struct CUlib_st *library;
	struct cu_code code;
};

struct CUmod_st {
	struct link link;     /* on its context's list; a library's module: on none */
	struct CUctx_st *ctx; /* NULL: a library's, for every context */
	struct CUlib_st *library;
	struct ptx ptx;
	struct cu_code code; /* a library's is cu_loaded's */
	struct CUfunc_st functions[PTX_ENTRIES];
};

/* A CUkernel is a CUfunction here: neither is bound to a context. */
struct CUlib_st {
	size_t image_bytes; /* first, so that a library and its module have two addresses */
	struct CUmod_st module;
};

/* Reads an image into a new module: m->ptx and its functions. cu_module_clear frees them again. */
CUresult cu_module_fill(struct CUmod_st *m, const char *image, unsigned device);
void cu_module_clear(struct CUmod_st *m);
CUresult cu_function_find(const struct CUmod_st *m, const char *name, struct CUfunc_st **out); /* or NOT_FOUND */
/* Handles of the first `room` functions; they serve as kernels too. */
unsigned cu_functions_list(struct CUmod_st *m, const void **out, unsigned room);
/* A file's text, NUL-terminated, on the heap; NULL and a code where it cannot be read. Needs no lock. */
char *cu_image_read(const char *path, CUresult *rc);

/* The function that a handle of either kind (CUfunction, CUkernel) names; NULL where there is none. */
struct CUfunc_st *cu_function_get(const void *handle);

/* OUT_OF_MEMORY where the context's device has no room for it. */
CUresult cu_code_load(const struct ptx *p, struct CUctx_st *ctx, struct cu_code *out);
void cu_code_unload(struct cu_code *code);
/* Where the module's memory in a context is; loads a library's on its first use there. */
CUresult cu_code_in(struct CUmod_st *m, struct CUctx_st *ctx, struct cu_code **out);
/* Of a context's functions only those of libraries can be missing there. */
CUresult cu_function_load(struct CUfunc_st *f, struct CUctx_st *ctx);
bool cu_function_is_loaded(const struct CUfunc_st *f, struct CUctx_st *ctx);
void cu_library_unload_all(struct CUlib_st *library); /* from every context */

void cu_modules_drop(struct CUctx_st *ctx);
void cu_code_drop(struct CUctx_st *ctx); /* what libraries have in a dying context */

#endif
