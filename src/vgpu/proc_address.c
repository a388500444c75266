/* cuGetProcAddress: the driver answers first. Its answer is replaced by ours
 *  1. where it is the address of an export that we hook; else
 *  2. where the table says that this request means an entry that we hook, and the driver's answer is the address of
 * none of its exports of that name (some drivers answer with inner functions): the highest version not above the
 *     requested one, that the driver exports, of the stream class that the flags ask for where the function has one.
 * A request for a version above our table's is the table's only if the driver gives the same answer for the table's
 * version; else it is newer than we know, passes through, and is counted. */
#include <string.h>

#include "core/fmt.h"
#include "vgpu/driver.h"
#include "vgpu/hooks.h"
#include "vgpu/state.h"

enum { NAME_BYTES = 128 };

struct request {
	const char *name;
	int version;
	cuuint64_t flags;
	void *found; /* the driver's answer */
};

struct variants {
	size_t first, end; /* in proc_rows */
};

static struct variants find_variants(const char *name)
{
	struct variants v = { 0, proc_row_count };
	size_t high = proc_row_count;

	while (v.first < high) {
		size_t middle = (v.first + high) / 2;

		if (strcmp(name_pool + proc_rows[middle].base, name) < 0)
			v.first = middle + 1;
		else
			high = middle;
	}
	v.end = v.first;
	while (v.end < proc_row_count && strcmp(name_pool + proc_rows[v.end].base, name) == 0)
		v.end++;
	return v;
}

static void *export_of(const struct proc_row *row)
{
	char name[NAME_BYTES];

	hm_fmt(name, sizeof name, "%s%s", name_pool + row->base, proc_suffixes[row->suffix]);
	return driver_symbol(DRIVER_CUDA, name);
}

static bool any_hooked(struct variants v)
{
	for (size_t i = v.first; i < v.end; i++) {
		if (proc_rows[i].entry >= 0)
			return true;
	}
	return false;
}

/* The slots of what we hook hold the exports' addresses: no need to look those up. */
static const struct proc_row *hooked_row_of_address(struct variants v, const void *address)
{
	for (size_t i = v.first; i < v.end; i++) {
		if (proc_rows[i].entry >= 0 && entry_real((enum vgpu_entry)proc_rows[i].entry) == address)
			return &proc_rows[i];
	}
	return NULL;
}

static const struct proc_row *row_of_address(struct variants v, const void *address)
{
	for (size_t i = v.first; i < v.end; i++) {
		if (export_of(&proc_rows[i]) == address)
			return &proc_rows[i];
	}
	return NULL;
}

static bool has_per_thread(struct variants v)
{
	for (size_t i = v.first; i < v.end; i++) {
		if (proc_rows[i].per_thread)
			return true;
	}
	return false;
}

static const struct proc_row *row_of_request(struct variants v, const struct request *q)
{
	bool want = (q->flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 && has_per_thread(v);
	const struct proc_row *best = NULL;

	for (size_t i = v.first; i < v.end; i++) {
		const struct proc_row *row = &proc_rows[i];

		if (row->version > q->version || row->per_thread != want || export_of(row) == NULL)
			continue;
		if (best == NULL || row->version > best->version)
			best = row;
	}
	return best;
}

/* Did the driver mean something that came after our table? */
static bool is_newer(const struct request *q)
{
	void *at_table = NULL;

	if (q->version <= PROC_TABLE_VERSION)
		return false;
	return REAL(cuGetProcAddress_v2)(q->name, &at_table, PROC_TABLE_VERSION, q->flags, NULL) != CUDA_SUCCESS ||
	       at_table != q->found;
}

static void *ours_of(const struct request *q)
{
	struct variants v = find_variants(q->name);
	const struct proc_row *row;

	if (v.first == v.end ||
	    (q->version > PROC_TABLE_VERSION && row_of_address(v, q->found) == NULL && is_newer(q))) {
		vgpu_count_unknown_entry();
		return q->found;
	}
	if (!any_hooked(v))
		return q->found;
	row = hooked_row_of_address(v, q->found);
	if (row == NULL)
		row = row_of_address(v, q->found);
	if (row == NULL)
		row = row_of_request(v, q);
	return row != NULL && row->entry >= 0 ? entry_ours[row->entry] : q->found;
}

/* cudart begins with an empty name and NULL for the status. */
static CUresult answer(CUresult rc, const char *name, void **out, int version, cuuint64_t flags)
{
	struct request q = { name, version, flags, NULL };

	if (rc != CUDA_SUCCESS || name == NULL || name[0] == '\0' || out == NULL || *out == NULL)
		return rc;
	q.found = *out;
	*out = ours_of(&q);
	return rc;
}

VGPU_EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
	return answer(REAL(cuGetProcAddress)(name, out, version, flags), name, out, version, flags);
}

VGPU_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
					 CUdriverProcAddressQueryResult *status)
{
	CUresult rc = REAL(cuGetProcAddress_v2)(name, out, version, flags, status);

	return answer(rc, name, out, version, flags);
}
