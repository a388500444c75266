/* Device memory of modules. A context has room for 2 MiB of code in its overhead and takes pages beyond that; code is
 * counted as long as its text. Variables have pages of their own. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/context.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/module.h"
#include "sim/cuda/space.h"

/* Pages beyond those of the context's overhead that so much code needs. */
static uint64_t pages(uint64_t code_bytes)
{
	return cu_round(HM_MAX(code_bytes, CU_PAGE_BYTES), CU_PAGE_BYTES) - CU_PAGE_BYTES;
}

/* Takes or gives back what the change of the context's code by `to` bytes means. */
static CUresult resize(struct CUctx_st *ctx, uint64_t to)
{
	uint64_t before = pages(ctx->code_bytes), after = pages(to);
	CUresult rc = after > before ? cu_charge(ctx->device, SIM_MEM_CONTEXT, after - before) : CUDA_SUCCESS;

	if (rc != CUDA_SUCCESS)
		return rc;
	if (before > after)
		cu_discharge(ctx->device, SIM_MEM_CONTEXT, before - after);
	ctx->context_bytes += after - before;
	ctx->code_bytes = to;
	return CUDA_SUCCESS;
}

CUresult cu_code_load(const struct ptx *p, struct CUctx_st *ctx, struct cu_code *out)
{
	*out = (struct cu_code) { .ctx = NULL };
	if (p->variable_bytes > cu_info(ctx->device)->memory_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult rc = resize(ctx, ctx->code_bytes + p->text_bytes);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (p->variable_bytes > 0) {
		struct cu_region *r = cu_region_new(CU_REGION_VARIABLES, ctx->device, p->variable_bytes, 0, 0);

		rc = r != NULL ? cu_region_charge(&r) : CUDA_ERROR_OUT_OF_MEMORY;
		if (rc != CUDA_SUCCESS) {
			(void)resize(ctx, ctx->code_bytes - p->text_bytes);
			return rc;
		}
		r->size = p->variable_bytes;
		out->variables = r;
	}
	out->ctx = ctx;
	out->code_bytes = p->text_bytes;
	return CUDA_SUCCESS;
}

void cu_code_unload(struct cu_code *code)
{
	if (code->ctx == NULL)
		return;
	(void)resize(code->ctx, code->ctx->code_bytes - code->code_bytes); /* less never fails */
	cu_region_free(code->variables);
	*code = (struct cu_code) { .ctx = NULL };
}

static void loaded_free(struct cu_loaded *l)
{
	cu_code_unload(&l->code);
	link_remove(&l->link);
	free(l);
}

static struct cu_loaded *loaded_in(const struct CUctx_st *ctx, const struct CUlib_st *library)
{
	LIST_FOR_EACH (&ctx->loaded, it) {
		struct cu_loaded *l = HM_CONTAINER(it, struct cu_loaded, link);

		if (l->library == library)
			return l;
	}
	return NULL;
}

CUresult cu_code_in(struct CUmod_st *m, struct CUctx_st *ctx, struct cu_code **out)
{
	*out = &m->code;
	if (m->library == NULL)
		return CUDA_SUCCESS;
	struct cu_loaded *l = loaded_in(ctx, m->library);

	if (l == NULL) {
		l = calloc(1, sizeof *l);
		CUresult rc = l != NULL ? cu_code_load(&m->ptx, ctx, &l->code) : CUDA_ERROR_OUT_OF_MEMORY;

		if (rc != CUDA_SUCCESS) {
			free(l);
			return rc;
		}
		l->library = m->library;
		link_append(&ctx->loaded, &l->link);
	}
	*out = &l->code;
	return CUDA_SUCCESS;
}

CUresult cu_function_load(struct CUfunc_st *f, struct CUctx_st *ctx)
{
	struct cu_code *code;

	return cu_code_in(f->module, cu_context_owner(ctx), &code);
}

bool cu_function_is_loaded(const struct CUfunc_st *f, struct CUctx_st *ctx)
{
	return f->module->library == NULL || loaded_in(cu_context_owner(ctx), f->module->library) != NULL;
}

void cu_code_drop(struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&ctx->loaded, it)
		loaded_free(HM_CONTAINER(it, struct cu_loaded, link));
}

static void unload_from(struct CUctx_st *ctx, const struct CUlib_st *library)
{
	struct cu_loaded *l = ctx->alive ? loaded_in(ctx, library) : NULL;

	if (l != NULL)
		loaded_free(l);
}

void cu_library_unload_all(struct CUlib_st *library)
{
	LIST_FOR_EACH (&cu_contexts, it)
		unload_from(HM_CONTAINER(it, struct CUctx_st, link), library);
}

CU_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule m, const char *name)
{
	struct CUctx_st *ctx;
	struct cu_code *code;

	if (name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_handle_is(m, CU_MODULE) ? cu_code_in(m, cu_context_owner(ctx), &code) : CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; rc == CUDA_SUCCESS && i < m->ptx.variable_count; i++) {
		const struct ptx_variable *v = &m->ptx.variables[i];

		if (strcmp(v->name, name) != 0)
			continue;
		if (out != NULL)
			*out = code->variables->base + v->offset;
		if (bytes != NULL)
			*bytes = v->bytes;
		return cu_leave(CUDA_SUCCESS);
	}
	return cu_leave(rc == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : rc);
}
