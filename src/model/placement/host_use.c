#include "model/placement/host_use.h"

#include <stdlib.h>

#include "base/map.h"

struct host_uses {
	struct map *by_uid; /* struct host_use */
};

struct host_uses *host_uses_new(void)
{
	hm_auto(host_uses) *u = calloc(1, sizeof *u);

	if (u == NULL)
		return NULL;
	u->by_uid = map_new();
	return u->by_uid == NULL ? NULL : HM_STEAL(u);
}

void host_uses_free(struct host_uses *u)
{
	void *value;

	if (u == NULL)
		return;
	for (size_t at = 0; u->by_uid != NULL && map_next(u->by_uid, &at, NULL, &value);) {
		const struct host_use *record = value;

		node_book_give_host(record->node, record->amount);
		free(value);
	}
	map_free(u->by_uid);
	free(u);
}

static struct host_use *record_of(struct host_uses *u, const char *uid)
{
	struct host_use *record = map_get(u->by_uid, uid);

	if (record != NULL)
		return record;
	record = calloc(1, sizeof *record);
	if (record == NULL || map_put(u->by_uid, uid, record, NULL) < 0) {
		free(record);
		return NULL;
	}
	return record;
}

int host_uses_take(struct host_uses *u, const char *uid, const struct host_use *use, struct node_book **left,
		   struct hm_err *e)
{
	struct host_use *record = record_of(u, uid);

	*left = NULL;
	if (record == NULL)
		return hm_err_set(e, HM_ENOMEM, "CPU and memory of pod %s: out of memory", uid);
	if (record->node != NULL)
		node_book_give_host(record->node, record->amount);
	if (record->node != use->node)
		*left = record->node;
	*record = *use;
	node_book_take_host(use->node, use->amount);
	return 0;
}

struct node_book *host_uses_give(struct host_uses *u, const char *uid, bool only_promise)
{
	struct host_use *record = map_get(u->by_uid, uid);
	struct node_book *node;

	if (record == NULL || (only_promise && !record->promised))
		return NULL;
	node = record->node;
	node_book_give_host(node, record->amount);
	map_remove(u->by_uid, uid);
	free(record);
	return node;
}
