#include "agent/container/hami_hook.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/container/hami_cdi.h"
#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "io/file.h"

enum { PATH_BYTES = 512, LIBRARY_MAX_BYTES = 64 * 1024 * 1024 };

struct hami_hook {
	const struct agent_options *options;
	const char *library;
	struct hami_answer_config answer;
	char monitor_dir[PATH_BYTES];
	char said[sizeof((struct hm_err *)NULL)->msg]; /* the last trouble with the specs */
};

/* ---- what containers are given */

static unsigned strategies_of(const struct hami_options *h)
{
	static const struct {
		const char *word;
		enum hami_list_strategy which;
	} words[] = {
		{ "envvar", HAMI_LIST_ENVVAR },
		{ "volume-mounts", HAMI_LIST_VOLUME_MOUNTS },
		{ "cdi-annotations", HAMI_LIST_CDI_ANNOTATIONS },
		{ "cdi-cri", HAMI_LIST_CDI_CRI },
	};
	unsigned out = 0;

	for (size_t i = 0; i < HM_COUNT(words); i++)
		out |= option_list_has(&h->device_list_strategy, words[i].word) ? words[i].which : 0;
	return out;
}

static unsigned extras_of(const struct hami_options *h)
{
	return (h->imex_channel_ids.text[0] != '\0' ? HAMI_EXTRA_IMEX : 0) | (h->gdrcopy ? HAMI_EXTRA_GDRCOPY : 0) |
	       (h->gds ? HAMI_EXTRA_GDS : 0) | (h->mofed ? HAMI_EXTRA_MOFED : 0);
}

void hami_hook_configure(struct hami_hook *f)
{
	const struct hami_options *h = &f->options->hami;

	f->answer = (struct hami_answer_config) {
		.hook_path = h->hook_path,
		.strategies = strategies_of(h),
		.ids_by_index = strcmp(h->device_id_strategy, "index") == 0,
		.pass_device_specs = h->pass_device_specs,
		.extras = extras_of(h),
		.extra_specs = f->answer.extra_specs,
		.disable_core_limit = h->disable_core_limit,
		.log_level = h->libcuda_log_level,
		.dev_root = h->dev_root[0] != '\0' ? h->dev_root : h->nvidia_driver_root,
		.annotation_prefix = h->cdi_annotation_prefix,
	};
}

const struct hami_answer_config *hami_hook_answer(const struct hami_hook *f)
{
	return &f->answer;
}

const char *hami_hook_monitor_dir(const struct hami_hook *f)
{
	return f->monitor_dir[0] != '\0' ? f->monitor_dir : NULL;
}

/* ---- HAMi's folder */

static bool has_hook_folder(const char *hook_path)
{
	char path[PATH_BYTES];
	struct stat st;

	hm_fmt(path, sizeof path, "%s/" HAMI_HOOK_VGPU, hook_path);
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Programs that run have the old file mapped: it is replaced, never written into. */
static int write_if_new(const char *path, const struct str *text, mode_t mode, struct hm_err *e)
{
	hm_auto_str old = { 0 };
	struct hm_err ignored;

	if (file_read(path, LIBRARY_MAX_BYTES, &old, &ignored) == 0 && old.n == text->n &&
	    memcmp(str_text(&old), str_text(text), text->n) == 0)
		return 0;
	if (file_replace(path, str_text(text), text->n, mode, e) < 0)
		return -e->code;
	log_info("HAMi's folder is brought up to date", KV("path", path));
	return 0;
}

static int install(const char *hook_path, const char *library, struct hm_err *e)
{
	hm_auto_str bytes = { 0 }, preload = { 0 };
	char path[PATH_BYTES];

	hm_fmt(path, sizeof path, "%s/" HAMI_HOOK_VGPU, hook_path);
	file_remove_temporaries(path, "");
	if (file_read(library, LIBRARY_MAX_BYTES, &bytes, e) < 0)
		return -e->code;
	hm_fmt(path, sizeof path, "%s/" HAMI_HOOK_LIBRARY, hook_path);
	str_addf(&preload, "%s\n", path);
	if (str_failed(&preload))
		return hm_err_set(e, HM_ENOMEM, "ld.so.preload");
	if (write_if_new(path, &bytes, 0755, e) < 0)
		return -e->code;
	hm_fmt(path, sizeof path, "%s/" HAMI_HOOK_PRELOAD, hook_path);
	return write_if_new(path, &preload, 0644, e);
}

int hami_hook_new(const struct agent_options *o, const char *library, struct hami_hook **out, struct hm_err *e)
{
	const char *hook_path = o->hami.hook_path;
	struct hami_hook *f = calloc(1, sizeof *f);
	struct hm_err why;

	if (f == NULL)
		return hm_err_set(e, HM_ENOMEM, "mode hami");
	*f = (struct hami_hook) { .options = o, .library = library };
	hami_hook_configure(f);
	if (o->hami_monitor_dir != NULL)
		hm_fmt(f->monitor_dir, sizeof f->monitor_dir, "%s", o->hami_monitor_dir);
	if (hook_path != NULL && has_hook_folder(hook_path)) {
		if (o->hami_monitor_dir == NULL)
			hm_fmt(f->monitor_dir, sizeof f->monitor_dir, "%s/" HAMI_HOOK_CONTAINERS, hook_path);
		if (install(hook_path, library, &why) < 0)
			log_warn("HAMi's folder is not brought up to date", KV_ERR(&why));
	}
	*out = f;
	return 0;
}

void hami_hook_free(struct hami_hook *f)
{
	free(f);
}

/* ---- CDI specs */

void hami_hook_take(struct hami_hook *f, struct driver_edits *driver, const struct inventory *cards)
{
	struct hm_err e;

	if (agent_binds_late(f->options) || (f->answer.strategies & HAMI_LIST_CDI) == 0)
		return;
	if (hami_cdi_write(&f->answer, driver, cards, f->options->cdi_dir, &f->answer.extra_specs, &e) == 0) {
		f->said[0] = '\0';
		return;
	}
	if (strcmp(f->said, e.msg) != 0)
		log_error("the CDI specs of the cards are not written; containers that name them wait", KV_ERR(&e));
	hm_fmt(f->said, sizeof f->said, "%s", e.msg);
}
