#include "fill.h"

#include <string.h>

#include "books.h"
#include "views.h"

enum { MAX_PIECES = 256 };

struct pieces {
	uint64_t what[MAX_PIECES];
	size_t count, bytes;
};

size_t fill_piece(void)
{
	return HM_MAX(check_limit() / 16 / (2 * MIB), (size_t)1) * 2 * MIB;
}

static size_t step_of(const struct way *way)
{
	return way->step != 0 ? way->step : 2 * MIB;
}

/* Takes pieces of one size until one is refused; true: the limit was passed, so there is no use in going on. */
static bool fill_by(int card, const struct way *way, size_t piece, struct pieces *p)
{
	size_t limit = check_limit(), held;
	CUresult rc = CUDA_SUCCESS;

	while (p->count < MAX_PIECES) {
		rc = way->take(&p->what[p->count], piece);
		if (rc != CUDA_SUCCESS)
			break;
		p->count++;
		p->bytes += piece;
		held = books_held(card);
		if (held > limit + check_slack() || p->bytes > limit) {
			HOLDS(held <= limit + check_slack(), "%zu KiB of the card are taken, the limit is %zu KiB",
			      held / 1024, limit / 1024);
			HOLDS(p->bytes <= limit, "%zu KiB were granted, the limit is %zu KiB", p->bytes / 1024,
			      limit / 1024);
			return true;
		}
	}
	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "the refusal of %zu KiB was %d", piece / 1024, rc);
	return false;
}

static bool fill(int card, const struct way *way, struct pieces *p)
{
	size_t step = step_of(way);

	for (size_t piece = fill_piece() / step * step; piece >= step; piece = piece / 2 / step * step)
		if (fill_by(card, way, piece, p))
			return false;
	return true;
}

static void give_back(const struct way *way, const struct pieces *p)
{
	for (size_t i = 0; i < p->count; i++)
		OK(way->give(p->what[i]));
	OK(cuCtxSynchronize());
	if (way->after != NULL)
		way->after();
}

/* What the first piece brings along that stays (code, a heap) belongs to the start. */
static void warm_up(const struct way *way)
{
	uint64_t what;

	if (way->before != NULL)
		way->before();
	CUresult rc = way->take(&what, 2 * MIB);

	if (rc == CUDA_ERROR_NOT_SUPPORTED)
		check_not_available("this driver does not allocate in this way");
	OK(rc);
	OK(way->give(what));
	OK(cuCtxSynchronize());
	if (way->after != NULL)
		way->after();
}

void fill_and_empty_here(int card, const struct way *way)
{
	warm_up(way);
	size_t used = views_match_books(card), held = books_held(card), first = 0;

	for (int round = 0; round < 2; round++) {
		struct pieces p = { 0 };
		bool within = fill(card, way, &p);

		if (!check_bare() && within) {
			size_t full = views_match_books(card), rest = way->rest != 0 ? way->rest : step_of(way);

			HOLDS(full + rest + 2 * MIB + check_slack() > check_limit(),
			      "refused with %zu KiB of %zu KiB in use", full / 1024, check_limit() / 1024);
			HOLDS(round == 0 || check_same(p.bytes, first), "%zu bytes the first time, then %zu", first,
			      p.bytes);
			first = p.bytes;
		}
		give_back(way, &p);
		HOLDS(check_same(books_settle(card, held), held), "the driver's books were at %zu and are at %zu", held,
		      books_held(card));
		HOLDS(check_same(views_used(card), used), "the views were at %zu and are at %zu", used,
		      views_used(card));
	}
}

void fill_and_empty(const struct way *way)
{
	check_use(0);
	fill_and_empty_here(0, way);
}

static __typeof__(&cuMemAlloc_v2) looked_up_alloc;
static __typeof__(&cuMemFree_v2) looked_up_free;

static CUresult take_looked_up(uint64_t *out, size_t bytes)
{
	return looked_up_alloc((CUdeviceptr *)out, bytes);
}

static CUresult give_looked_up(uint64_t what)
{
	return looked_up_free(what);
}

void fill_by_addresses(void *alloc_address, void *free_address)
{
	if (alloc_address == NULL || free_address == NULL)
		check_not_available("this lookup knows no cuMemAlloc");
	memcpy(&looked_up_alloc, &alloc_address, sizeof looked_up_alloc);
	memcpy(&looked_up_free, &free_address, sizeof looked_up_free);
	fill_and_empty(&(struct way) { .take = take_looked_up, .give = give_looked_up });
}

void fill_expect_room(int card)
{
	CUdeviceptr p;
	size_t used = views_used(card), room = (check_limit() - HM_MIN(used, check_limit())) / (2 * MIB) * (2 * MIB);
	CUresult rc = cuMemAlloc_v2(&p, room + 2 * MIB + check_slack());

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "2 MiB more than there is room for: %d", rc);
	if (rc == CUDA_SUCCESS)
		OK(cuMemFree_v2(p));
	if (room <= check_slack())
		return;
	rc = cuMemAlloc_v2(&p, room - check_slack());
	HOLDS(rc == CUDA_SUCCESS, "just what there is room for: %d", rc);
	if (rc == CUDA_SUCCESS)
		OK(cuMemFree_v2(p));
}
