#include "agent/edits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/container.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "io/file.h"

enum { DRIVER_SPEC_MAX_BYTES = 8 * 1024 * 1024 };

struct edits {
	const struct agent_options *options;
	const struct agent_paths *paths;
	const char *library;
	struct cdi_spec *driver; /* NULL: not read yet */
	struct stat driver_stat; /* of the file it was read from */
};

int edits_new(const struct agent_options *o, const struct agent_paths *paths, const char *library, struct edits **out,
	      struct hm_err *e)
{
	struct edits *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	*m = (struct edits) { .options = o, .paths = paths, .library = library };
	if (o->nvidia_cdi_spec != NULL && access(o->nvidia_cdi_spec, R_OK) < 0)
		log_warn("the driver's CDI spec is not there yet; containers wait for it",
			 KV("path", o->nvidia_cdi_spec));
	*out = m;
	return 0;
}

void edits_free(struct edits *m)
{
	if (m == NULL)
		return;
	cdi_spec_free(m->driver);
	free(m);
}

/* ---- the driver's part, from its CDI spec */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_driver_spec(struct edits *m, struct hm_err *e)
{
	const char *path = m->options->nvidia_cdi_spec;
	hm_auto(cdi_spec) *spec = NULL;
	hm_auto_str text = { 0 };
	struct stat st;

	if (m->driver != NULL && stat(path, &st) == 0 && same_file(&st, &m->driver_stat))
		return 0;
	memset(&st, 0, sizeof st);
	if (stat(path, &st) < 0)
		return hm_err_set(e, HM_EAGAIN,
				  "the driver's CDI spec %s is not there; nvidia-ctk cdi generate makes it", path);
	if (file_read(path, DRIVER_SPEC_MAX_BYTES, &text, e) < 0 || cdi_spec_parse(text.p, text.n, &spec, e) < 0)
		return hm_err_wrap(e, "the driver's CDI spec %s", path);
	cdi_spec_free(m->driver);
	m->driver = HM_STEAL(spec);
	m->driver_stat = st;
	return 0;
}

/* nvidia-ctk names devices by UUID, by index ("0") or by type and index ("gpu0"), as it was told. */
static const struct cdi_device *find_driver_device(const struct cdi_spec *spec, const struct card *card)
{
	char names[3][HM_UUID_BYTES];

	hm_fmt(names[0], sizeof names[0], "%s", card->uuid);
	hm_fmt(names[1], sizeof names[1], "%u", card->index);
	hm_fmt(names[2], sizeof names[2], "gpu%u", card->index);
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		const struct cdi_device *d = cdi_spec_device(spec, names[i]);

		if (d != NULL)
			return d;
	}
	return NULL;
}

static int add_from_spec(struct edits *m, const struct card *const *cards, size_t n, struct cdi_edits *out,
			 struct hm_err *e)
{
	if (read_driver_spec(m, e) < 0)
		return -e->code;
	if (cdi_edits_append(out, &m->driver->edits) < 0)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	for (size_t i = 0; i < n; i++) {
		const struct cdi_device *d = find_driver_device(m->driver, cards[i]);

		if (d == NULL)
			return hm_err_set(
				e, HM_EAGAIN, "the driver's CDI spec %s has no device \"%s\", \"%u\" or \"gpu%u\"",
				m->options->nvidia_cdi_spec, cards[i]->uuid, cards[i]->index, cards[i]->index);
		if (cdi_edits_append(out, &d->edits) < 0)
			return hm_err_set(e, HM_ENOMEM, "container edits");
	}
	return 0;
}

/* ---- the driver's part without a spec */

/* Which a driver-API program needs. Missing ones are left out: not every driver version has each. */
static const char *const driver_libraries[] = {
	"libcuda.so.1",
	"libnvidia-ml.so.1",
	"libnvidia-ptxjitcompiler.so.1",
	"libnvidia-nvvm.so.4",
};
static const char *const library_folders[] = {
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib",
};
static const char *const common_nodes[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools" };

static int add_node(const struct edits *m, const char *path, bool required, struct cdi_edits *out, struct hm_err *e)
{
	const char *root = m->options->device_root != NULL ? m->options->device_root : m->options->driver_root;
	char host[1024];

	hm_fmt(host, sizeof host, "%s%s", root != NULL && strcmp(root, "/") != 0 ? root : "", path);
	if (access(host, F_OK) < 0)
		return required ? hm_err_set(e, HM_EAGAIN, "the card's device node %s is not there", host) : 0;
	return cdi_add_node(out, path, host, "rw") < 0 ? hm_err_set(e, HM_ENOMEM, "container edits") : 0;
}

static int add_libraries(const struct edits *m, struct cdi_edits *out, struct hm_err *e)
{
	for (size_t lib = 0; lib < HM_COUNT(driver_libraries); lib++)
		for (size_t folder = 0; folder < HM_COUNT(library_folders); folder++) {
			const char *root = m->options->driver_root;
			char inside[256], host[1024];

			hm_fmt(inside, sizeof inside, "%s/%s", library_folders[folder], driver_libraries[lib]);
			hm_fmt(host, sizeof host, "%s%s", strcmp(root, "/") != 0 ? root : "", inside);
			if (access(host, F_OK) < 0)
				continue;
			if (cdi_add_mount(out, host, inside, true) < 0)
				return hm_err_set(e, HM_ENOMEM, "container edits");
			break;
		}
	return 0;
}

static int add_from_roots(const struct edits *m, const struct card *const *cards, size_t n, struct cdi_edits *out,
			  struct hm_err *e)
{
	for (size_t i = 0; i < n; i++) {
		char path[64];

		hm_fmt(path, sizeof path, "/dev/nvidia%u", cards[i]->minor);
		if (add_node(m, path, true, out, e) < 0)
			return -e->code;
	}
	for (size_t i = 0; i < HM_COUNT(common_nodes); i++)
		if (add_node(m, common_nodes[i], false, out, e) < 0)
			return -e->code;
	return m->options->driver_root != NULL ? add_libraries(m, out, e) : 0;
}

/* ---- our part */

static int add_env(const struct claim *c, struct cdi_edits *out, struct hm_err *e)
{
	hm_auto_str vgpus = { 0 }, cards = { 0 };

	for (size_t i = 0; i < c->card_count; i++) {
		str_addf(&vgpus, "%s%s/%u", i > 0 ? "," : "", c->cards[i].uuid, c->cards[i].slot);
		str_addf(&cards, "%s%s", i > 0 ? "," : "", c->cards[i].uuid);
	}
	if (str_failed(&vgpus) || str_failed(&cards) || cdi_add_env(out, HM_ENV_VGPU_UUID, str_text(&vgpus)) < 0 ||
	    cdi_add_env(out, HM_ENV_VISIBLE_DEVICES, str_text(&cards)) < 0)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	return 0;
}

/* LD_PRELOAD is left to the pod: the dynamic loader reads ld.so.preload whatever it says, and images set it for
 * allocators that they need. */
static int add_mounts(const struct edits *m, const struct claim *c, struct cdi_edits *out, struct hm_err *e)
{
	const struct {
		const char *file, *inside;
		bool read_only;
	} files[] = {
		{ HM_ALLOC_LIMITS, HM_CONTAINER_LIMITS, true },
		{ HM_ALLOC_USAGE, HM_CONTAINER_USAGE_DIR, false },
		{ HM_ALLOC_PRELOAD, HM_CONTAINER_PRELOAD, true },
	};

	if (cdi_add_mount(out, m->library, HM_CONTAINER_LIB, true) < 0)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	for (size_t i = 0; i < HM_COUNT(files); i++) {
		struct agent_path host = agent_path_alloc(m->paths, c->number, files[i].file);

		if (cdi_add_mount(out, host.s, files[i].inside, files[i].read_only) < 0)
			return hm_err_set(e, HM_ENOMEM, "container edits");
	}
	return 0;
}

/* ---- */

static int find_cards(const struct claim *c, const struct inventory *inv, const struct card **out, struct hm_err *e)
{
	for (size_t i = 0; i < c->card_count; i++) {
		out[i] = inventory_find(inv, c->cards[i].uuid);
		if (out[i] == NULL)
			return hm_err_set(e, HM_EAGAIN, "card %s is not on this node now", c->cards[i].uuid);
	}
	return 0;
}

int edits_make(struct edits *m, const struct claim *c, const struct inventory *inv, struct cdi_edits *out,
	       struct hm_err *e)
{
	const struct card *cards[HM_MAX_CARDS];
	int r;

	memset(out, 0, sizeof *out);
	if (find_cards(c, inv, cards, e) < 0)
		return -e->code;
	r = m->options->nvidia_cdi_spec != NULL ? add_from_spec(m, cards, c->card_count, out, e)
						: add_from_roots(m, cards, c->card_count, out, e);
	if (r < 0 || add_env(c, out, e) < 0 || add_mounts(m, c, out, e) < 0) {
		cdi_edits_fini(out);
		return -e->code;
	}
	return 0;
}
