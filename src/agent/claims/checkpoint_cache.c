#include "agent/claims/checkpoint_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct checkpoint_cache {
	const char *path;
	char *resource;
	struct stat seen;
	struct checkpoint *checkpoint; /* NULL: none of use is held */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int checkpoint_cache_new(const char *path, const char *resource, struct checkpoint_cache **out, struct hm_err *e)
{
	hm_auto(checkpoint_cache) *c = calloc(1, sizeof *c);

	if (c == NULL || (c->resource = strdup(resource)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "the kubelet's checkpoint");
	c->path = path;
	*out = HM_STEAL(c);
	return 0;
}

void checkpoint_cache_free(struct checkpoint_cache *c)
{
	if (c == NULL)
		return;
	checkpoint_free(c->checkpoint);
	free(c->resource);
	free(c);
}

int checkpoint_cache_get(struct checkpoint_cache *c, const struct checkpoint **out, struct hm_err *e)
{
	struct stat now;

	/* Before the read: a file that is replaced meanwhile is read again by the next call. */
	if (stat(c->path, &now) < 0)
		return hm_err_errno(e, errno, "%s", c->path);
	if (c->checkpoint == NULL || !is_same(&now, &c->seen)) {
		checkpoint_free(HM_STEAL(c->checkpoint));
		if (checkpoint_read(c->path, c->resource, &c->checkpoint, e) < 0)
			return -e->code;
		c->seen = now;
	}
	*out = c->checkpoint;
	return 0;
}

const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *pod_uid, const char *container)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->entries[i].pod_uid, pod_uid) == 0 && strcmp(c->entries[i].container, container) == 0)
			return &c->entries[i];
	return NULL;
}
