/* inotify on one folder, in the loop: what appears, what goes, and the folder's own disappearance. */
#ifndef HM_IO_DIR_WATCH_H
#define HM_IO_DIR_WATCH_H

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum dir_event {
	DIR_CREATED, /* a name was made or moved here */
	DIR_DELETED, /* a name was removed or moved away */
	DIR_WRITTEN, /* a file that was open for writing was closed; dir_watch_new_writes only */
	DIR_GONE,    /* the folder itself went, or events were lost: look for yourself and watch anew; name is "" */
};

struct dir_watch;

/* -HM_ENOTFOUND where the folder does not exist. The watch may be freed inside its callback. */
int dir_watch_new(struct loop *l, const char *path, void (*cb)(void *arg, enum dir_event event, const char *name),
		  void *arg, struct dir_watch **out, struct hm_err *e) HM_MUST_USE;
/* The same, told of writes, too. */
int dir_watch_new_writes(struct loop *l, const char *path,
			 void (*cb)(void *arg, enum dir_event event, const char *name), void *arg,
			 struct dir_watch **out, struct hm_err *e) HM_MUST_USE;
void dir_watch_free(struct dir_watch *w);
HM_DEFINE_AUTO(dir_watch, dir_watch_free);

#endif
