/* Contexts: what they take themselves, and what goes with them. */
#include "books.h"
#include "fill.h"
#include "paths.h"
#include "views.h"

static CUresult make_2(CUcontext *out)
{
	return cuCtxCreate_v2(out, 0, 0);
}
static CUresult make_3(CUcontext *out)
{
	return cuCtxCreate_v3(out, NULL, 0, 0, 0);
}
static CUresult make_4(CUcontext *out)
{
	return cuCtxCreate_v4(out, NULL, 0, 0);
}
static CUresult make_1(CUcontext *out)
{
	return cuCtxCreate(out, 0, 0);
}

/* A second context is charged and given back; beside a block so big that it does not fit it is refused and gone. */
static void contexts(CUresult (*make)(CUcontext *), CUresult (*destroy)(CUcontext))
{
	CUcontext main_ctx = check_use(0), ctx = NULL;
	CUdeviceptr p;
	size_t start = views_match_books(0);

	OK(make(&ctx));
	size_t two = views_match_books(0), each = two - start;

	OK(cuMemAlloc_v2(&p, fill_piece()));
	HOLDS(check_same(views_match_books(0), two + fill_piece()), "allocated in it: %zu", views_used(0) - two);
	OK(destroy(ctx));
	OK(cuCtxSetCurrent(main_ctx));
	HOLDS(books_settle(0, start) <= start + check_slack(), "the driver still has %zu", books_held(0));
	HOLDS(check_same(views_match_books(0), start), "destroyed with what it held: still %zu", views_used(0) - start);
	if (each < 4 * MIB)
		check_not_available("a context takes no memory here");
	OK(cuMemAlloc_v2(&p, (check_limit() - start) / (2 * MIB) * 2 * MIB - 2 * MIB));
	CUresult rc = make(&ctx);

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "a context that does not fit: %d", rc);
	if (rc == CUDA_SUCCESS)
		OK(destroy(ctx));
	OK(cuCtxSetCurrent(main_ctx));
	OK(cuMemFree_v2(p));
	HOLDS(books_settle(0, start) <= start + check_slack(), "the driver still has %zu", books_held(0));
	HOLDS(check_same(views_match_books(0), start), "after the refusal: %zu", views_used(0) - start);
	fill_expect_room(0);
}

static void run_create(void)
{
	NEED(cuCtxCreate);
	contexts(make_1, cuCtxDestroy);
}
static void run_create_2(void)
{
	contexts(make_2, cuCtxDestroy_v2);
}
static void run_create_3(void)
{
	NEED(cuCtxCreate_v3);
	contexts(make_3, cuCtxDestroy_v2);
}
static void run_create_4(void)
{
	NEED(cuCtxCreate_v4);
	contexts(make_4, cuCtxDetach);
}

/* The primary context and all in it, by each call that ends it. */
static void primary(CUresult (*end)(CUdevice))
{
	CUdeviceptr p;

	check_use(0);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	HOLDS(views_match_books(0) >= fill_piece(), "charged %zu", views_used(0));
	OK(cuCtxSetCurrent(NULL));
	OK(end(0));
	HOLDS(books_settle(0, 0) <= check_slack(), "the driver still has %zu", books_held(0));
	HOLDS(check_same(views_match_books(0), 0), "the primary context is gone: %zu", views_used(0));
	check_use(0);
	fill_expect_room(0);
	OK(cuCtxSetCurrent(NULL));
	OK(end(0));
}

static void run_release(void)
{
	primary(cuDevicePrimaryCtxRelease_v2);
}
static void run_release_1(void)
{
	NEED(cuDevicePrimaryCtxRelease);
	primary(cuDevicePrimaryCtxRelease);
}
static void run_reset(void)
{
	primary(cuDevicePrimaryCtxReset_v2);
}
static void run_reset_1(void)
{
	NEED(cuDevicePrimaryCtxReset);
	primary(cuDevicePrimaryCtxReset);
}

/* A primary context that does not fit beside what another process holds is refused, and is not there. */
static void run_primary_refused(void)
{
	struct child c = child_start("hold-all");
	CUcontext ctx;

	OK(cuInit(0));
	child_await(c.sock);
	size_t before = books_held(0);
	CUresult rc = cuDevicePrimaryCtxRetain(&ctx, 0);

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "a primary context beside a full limit: %d", rc);
	HOLDS(books_settle(0, before) == before, "it takes %zu", books_held(0) - before);
	child_end(&c);
	(void)books_settle(0, 0);
	check_use(0);
	fill_expect_room(0);
}

/* Freed while another context of the card is current. */
static void run_free_elsewhere(void)
{
	CUdeviceptr p, q;
	CUcontext own, first = check_use(0);
	size_t here = views_match_books(0);

	OK(cuMemAlloc_v2(&p, fill_piece()));
	OK(cuCtxCreate_v2(&own, 0, 0));
	size_t both = views_match_books(0);

	OK(cuMemAlloc_v2(&q, fill_piece()));
	OK(cuMemFree_v2(p)); /* of the primary context */
	HOLDS(check_same(views_match_books(0), both), "freed in another context: %zu", views_used(0));
	OK(cuCtxSetCurrent(first));
	OK(cuMemFree_v2(q));
	OK(cuCtxDestroy_v2(own));
	HOLDS(books_settle(0, here) <= here + check_slack(), "the driver still has %zu", books_held(0));
	HOLDS(check_same(views_match_books(0), here), "all freed: %zu", views_used(0));
	fill_expect_room(0);
}

/* Freed while a context of the other card is current. */
static void run_free_on_other_card(void)
{
	CUdeviceptr p;
	CUcontext second = check_use(1);

	check_use(0);
	size_t here = views_match_books(0), there = views_match_books(1);

	OK(cuMemAlloc_v2(&p, fill_piece()));
	OK(cuCtxSetCurrent(second));
	OK(cuMemFree_v2(p));
	HOLDS(check_same(views_match_books(0), here) && check_same(views_match_books(1), there),
	      "freed from card 1: %zu on 0, %zu on 1", views_used(0), views_used(1));
	fill_expect_room(1);
}

static CUresult take_plain(uint64_t *out, size_t bytes)
{
	return cuMemAlloc_v2((CUdeviceptr *)out, bytes);
}
static CUresult give_plain(uint64_t what)
{
	return cuMemFree_v2(what);
}

static void run_second_card(void)
{
	check_use(1);
	fill_and_empty_here(1, &(struct way) { .take = take_plain, .give = give_plain });
}

/* Heap, printf buffer and stack of kernels are memory of the card. */
static void context_limit(CUlimit which, size_t value)
{
	size_t old = 0;

	check_use(0);
	OK(cuCtxGetLimit(&old, which));
	size_t start = views_match_books(0);

	OK(cuCtxSetLimit(which, value));
	OK(cuCtxSynchronize());
	size_t more = views_match_books(0);

	fill_expect_room(0);
	OK(cuCtxSetLimit(which, old));
	OK(cuCtxSynchronize());
	size_t back = views_match_books(0);

	HOLDS(back <= more && back + 2 * MIB >= start, "was %zu, %zu, is %zu", start, more, back);
	CUresult rc = cuCtxSetLimit(which, check_limit());

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY || views_match_books(0) <= check_limit(), "the whole limit: %d", rc);
	HOLDS(books_held(0) <= check_limit() + check_slack(), "the card has %zu taken", books_held(0));
}

static void run_heap(void)
{
	context_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * MIB);
}
static void run_printf(void)
{
	context_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 64 * MIB);
}

/* ---- green contexts */

static CUresult make_green(CUgreenCtx *out)
{
	CUdevResource all = { 0 }, part = { 0 };
	CUdevResourceDesc desc;
	unsigned groups = 1;

	SUPPORTED(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 8));
	OK(cuDevResourceGenerateDesc(&desc, &part, 1));
	return cuGreenCtxCreate(out, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
}

static void run_green(void)
{
	CUdeviceptr p;
	CUcontext as_ctx, first;
	CUgreenCtx green;

	NEED(cuGreenCtxCreate);
	first = check_use(0);
	size_t start = views_match_books(0);

	SUPPORTED(make_green(&green));
	size_t with = views_match_books(0);

	OK(cuCtxFromGreenCtx(&as_ctx, green));
	OK(cuCtxSetCurrent(as_ctx));
	OK(cuMemAlloc_v2(&p, fill_piece()));
	HOLDS(check_same(views_match_books(0), with + fill_piece()), "allocated in it: %zu", views_used(0) - with);
	fill_expect_room(0);
	OK(cuMemFree_v2(p));
	OK(cuCtxSetCurrent(first));
	OK(cuGreenCtxDestroy(green));
	HOLDS(check_same(views_match_books(0), start), "destroyed: %zu", views_used(0) - start);
	fill_expect_room(0);
}

/* A green context that does not fit is refused. */
static void run_green_refused(void)
{
	CUdeviceptr p;
	CUgreenCtx green;

	NEED(cuGreenCtxCreate);
	check_use(0);
	size_t start = views_match_books(0);

	SUPPORTED(make_green(&green));
	size_t each = books_held(0) - HM_MIN(start, books_held(0));

	OK(cuGreenCtxDestroy(green));
	if (!check_bare() && each < 4 * MIB)
		check_not_available("a green context takes no memory here");
	OK(cuMemAlloc_v2(&p, (check_limit() - views_used(0)) / (2 * MIB) * 2 * MIB - 2 * MIB));
	CUresult rc = make_green(&green);

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "a green context that does not fit: %d", rc);
	HOLDS(books_held(0) <= check_limit() + check_slack(), "the card has %zu taken", books_held(0));
}

const struct path paths_context[] = {
	{ "context-create", run_create, BARE_BREAKS },
	{ "context-create-2", run_create_2, BARE_BREAKS },
	{ "context-create-3", run_create_3, BARE_BREAKS },
	{ "context-create-4", run_create_4, BARE_BREAKS },
	{ "primary-release", run_release, BARE_BREAKS },
	{ "primary-release-first-version", run_release_1, BARE_BREAKS },
	{ "primary-reset", run_reset, BARE_BREAKS },
	{ "primary-reset-first-version", run_reset_1, BARE_BREAKS },
	{ "primary-refused", run_primary_refused, BARE_BREAKS },
	{ "free-in-another-context", run_free_elsewhere, BARE_BREAKS },
	{ "free-on-another-card", run_free_on_other_card, BARE_BREAKS },
	{ "second-card", run_second_card, BARE_BREAKS },
	{ "context-heap", run_heap, BARE_BREAKS },
	{ "context-printf", run_printf, BARE_BREAKS },
	{ "green-context", run_green, BARE_BREAKS },
	{ "green-context-refused", run_green_refused, BARE_BREAKS },
	{ 0 },
};
