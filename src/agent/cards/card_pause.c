#include "agent/cards/card_pause.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "contract/hami.h"

struct card_pause {
	struct publish *publish;
	int folder; /* -1: cannot be used */
};

/* The folder is below /tmp, where anybody may have put something of that name. */
static int open_folder(const char *path, struct hm_err *e)
{
	hm_auto_fd fd = -1;
	struct stat st;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return hm_err_errno(e, errno, "%s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return hm_err_errno(e, errno, "%s", path);
	if (st.st_uid != geteuid())
		return hm_err_set(e, HM_EPERM, "%s belongs to user %u", path, (unsigned)st.st_uid);
	return hm_steal_fd(&fd);
}

static void remove_lock(const struct card_pause *p)
{
	if (p->folder >= 0 && unlinkat(p->folder, HAMI_APPLY_LOCK, 0) < 0 && errno != ENOENT)
		log_warn("HAMi's lock file stays: its monitor may wait for its end", KV("file", HAMI_APPLY_LOCK),
			 KV("err", hm_errno_text(errno)));
}

int card_pause_new(struct publish *publish, const char *folder, struct card_pause **out, struct hm_err *e)
{
	struct card_pause *p = calloc(1, sizeof *p);
	struct hm_err why;

	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "pause of the cards");
	*p = (struct card_pause) { publish, open_folder(folder, &why) };
	if (p->folder < 0)
		log_warn("HAMi's monitor is not told when MIG changes the cards", KV_ERR(&why));
	remove_lock(p);
	*out = p;
	return 0;
}

void card_pause_free(struct card_pause *p)
{
	if (p == NULL)
		return;
	remove_lock(p);
	if (p->folder >= 0)
		close(p->folder);
	free(p);
}

void card_pause_begin(struct card_pause *p, void (*ready)(void *arg), void *arg)
{
	hm_auto_fd fd = -1;

	if (p->folder >= 0) {
		fd = openat(p->folder, HAMI_APPLY_LOCK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0)
			log_warn("HAMi's monitor is not told that MIG changes the cards", KV("file", HAMI_APPLY_LOCK),
				 KV("err", hm_errno_text(errno)));
	}
	publish_pause(p->publish, ready, arg);
}

void card_pause_end(struct card_pause *p)
{
	remove_lock(p);
	publish_resume(p->publish);
}
