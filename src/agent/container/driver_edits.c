#include "agent/container/driver_edits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/options/mig_nodes.h"
#include "base/log.h"
#include "base/str.h"
#include "core/fmt.h"
#include "io/file.h"

enum { DRIVER_SPEC_MAX_BYTES = 8 * 1024 * 1024 };

struct driver_edits {
	const struct agent_options *options;
	struct cdi_spec *spec; /* NULL: not read yet */
	struct stat stat;      /* of the file it was read from */
};

int driver_edits_new(const struct agent_options *o, struct driver_edits **out, struct hm_err *e)
{
	struct driver_edits *d = calloc(1, sizeof *d);

	if (d == NULL)
		return hm_err_set(e, HM_ENOMEM, "container edits");
	d->options = o;
	if (o->nvidia_cdi_spec != NULL && access(o->nvidia_cdi_spec, R_OK) < 0)
		log_warn("the driver's CDI spec is not there yet; containers wait for it",
			 KV("path", o->nvidia_cdi_spec));
	*out = d;
	return 0;
}

void driver_edits_free(struct driver_edits *d)
{
	if (d == NULL)
		return;
	cdi_spec_free(d->spec);
	free(d);
}

static int append(struct cdi_edits *out, const struct cdi_edits *from, struct hm_err *e)
{
	return cdi_edits_append(out, from) < 0 ? hm_err_set(e, HM_ENOMEM, "container edits") : 0;
}

/* ---- from the driver's CDI spec */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_driver_spec(struct driver_edits *d, struct hm_err *e)
{
	const char *path = d->options->nvidia_cdi_spec;
	hm_auto(cdi_spec) *spec = NULL;
	hm_auto_str text = { 0 };
	struct stat st;

	if (d->spec != NULL && stat(path, &st) == 0 && same_file(&st, &d->stat))
		return 0;
	memset(&st, 0, sizeof st);
	if (stat(path, &st) < 0)
		return hm_err_set(e, HM_EAGAIN,
				  "the driver's CDI spec %s is not there; nvidia-ctk cdi generate makes it", path);
	if (file_read(path, DRIVER_SPEC_MAX_BYTES, &text, e) < 0 || cdi_spec_parse(text.p, text.n, &spec, e) < 0)
		return hm_err_wrap(e, "the driver's CDI spec %s", path);
	cdi_spec_free(d->spec);
	d->spec = HM_STEAL(spec);
	d->stat = st;
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
		const struct cdi_device *device = cdi_spec_device(spec, names[i]);

		if (device != NULL)
			return device;
	}
	return NULL;
}

static int card_from_spec(struct driver_edits *d, const struct card *card, struct cdi_edits *out, struct hm_err *e)
{
	const struct cdi_device *device;

	if (read_driver_spec(d, e) < 0)
		return -e->code;
	device = find_driver_device(d->spec, card);
	if (device == NULL)
		return hm_err_set(e, HM_EAGAIN, "the driver's CDI spec %s has no device \"%s\", \"%u\" or \"gpu%u\"",
				  d->options->nvidia_cdi_spec, card->uuid, card->index, card->index);
	return append(out, &device->edits, e);
}

/* ---- without a spec */

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

static int add_node(const struct driver_edits *d, const char *path, bool required, struct cdi_edits *out,
		    struct hm_err *e)
{
	const char *root = d->options->device_root != NULL ? d->options->device_root : d->options->driver_root;
	char host[1024];

	hm_fmt(host, sizeof host, "%s%s", root != NULL && strcmp(root, "/") != 0 ? root : "", path);
	if (access(host, F_OK) < 0)
		return required ? hm_err_set(e, HM_EAGAIN, "the card's device node %s is not there", host) : 0;
	return cdi_add_node(out, path, host, "rw") < 0 ? hm_err_set(e, HM_ENOMEM, "container edits") : 0;
}

/* Where the driver lies for us, and for the node. */
struct roots {
	const char *here, *node; /* NULL: nowhere */
};

static struct roots library_roots(const struct driver_edits *d, bool alone)
{
	const struct agent_options *o = d->options;

	if (o->driver_root != NULL)
		return (struct roots) { o->driver_root, o->driver_root };
	if (alone && agent_is_hami(o) && o->hami.driver_root_ctr_path[0] != '\0' &&
	    access(o->hami.driver_root_ctr_path, F_OK) == 0)
		return (struct roots) { o->hami.driver_root_ctr_path, o->hami.nvidia_driver_root };
	return (struct roots) { NULL, NULL };
}

static const char *below(const char *root)
{
	return strcmp(root, "/") != 0 ? root : "";
}

/* The loader's cache in the container is to know the folders too: images need not have them in its path. */
static int add_ldcache_hook(const struct driver_edits *d, const bool *used, struct cdi_edits *out, struct hm_err *e)
{
	const char *path = d->options->hami.nvidia_cdi_hook_path, *slash = strrchr(path, '/');
	char *args[3 + 2 * HM_COUNT(library_folders)];
	struct cdi_hook hook = { .name = (char *)"createContainer", .path = (char *)path, .args = args };

	if (path[0] == '\0')
		return 0;
	args[hook.arg_count++] = (char *)(slash != NULL ? slash + 1 : path);
	if (strcmp(args[0], "nvidia-ctk") == 0)
		args[hook.arg_count++] = (char *)"hook";
	args[hook.arg_count++] = (char *)"update-ldcache";
	for (size_t i = 0; i < HM_COUNT(library_folders); i++) {
		if (!used[i])
			continue;
		args[hook.arg_count++] = (char *)"--folder";
		args[hook.arg_count++] = (char *)library_folders[i];
	}
	return cdi_add_hook(out, &hook) < 0 ? hm_err_set(e, HM_ENOMEM, "container edits") : 0;
}

/* 1: it is in this folder. */
static int add_library(const struct roots *roots, const char *folder, const char *name, struct cdi_edits *out,
		       struct hm_err *e)
{
	char inside[256], here[1024], node[1024];

	hm_fmt(inside, sizeof inside, "%s/%s", folder, name);
	hm_fmt(here, sizeof here, "%s%s", below(roots->here), inside);
	hm_fmt(node, sizeof node, "%s%s", below(roots->node), inside);
	if (access(here, F_OK) < 0)
		return 0;
	return cdi_add_mount(out, node, inside, true) < 0 ? hm_err_set(e, HM_ENOMEM, "container edits") : 1;
}

static int add_libraries(const struct driver_edits *d, const struct roots *roots, struct cdi_edits *out,
			 struct hm_err *e)
{
	bool used[HM_COUNT(library_folders)] = { false }, any = false;

	for (size_t lib = 0; lib < HM_COUNT(driver_libraries); lib++) {
		int r = 0;

		for (size_t i = 0; i < HM_COUNT(library_folders) && r == 0; i++) {
			r = add_library(roots, library_folders[i], driver_libraries[lib], out, e);
			used[i] |= r > 0;
		}
		if (r < 0)
			return r;
		any |= r > 0;
	}
	return any ? add_ldcache_hook(d, used, out, e) : 0;
}

/* ---- */

int driver_edits_common(struct driver_edits *d, bool alone, struct cdi_edits *out, struct hm_err *e)
{
	struct roots roots;

	if (d->options->nvidia_cdi_spec != NULL)
		return read_driver_spec(d, e) < 0 ? -e->code : append(out, &d->spec->edits, e);
	for (size_t i = 0; i < HM_COUNT(common_nodes); i++)
		if (add_node(d, common_nodes[i], false, out, e) < 0)
			return -e->code;
	roots = library_roots(d, alone);
	return roots.here != NULL ? add_libraries(d, &roots, out, e) : 0;
}

int driver_edits_card(struct driver_edits *d, const struct card *card, struct cdi_edits *out, struct hm_err *e)
{
	char path[64];

	if (d->options->nvidia_cdi_spec != NULL)
		return card_from_spec(d, card, out, e);
	hm_fmt(path, sizeof path, "/dev/nvidia%u", card->minor);
	return add_node(d, path, true, out, e);
}

static const char *node_root(const struct driver_edits *d)
{
	return d->options->device_root != NULL ? d->options->device_root : d->options->driver_root;
}

/* A spec made while MIG was on has no device for the card as a whole. */
static int mig_card(struct driver_edits *d, const struct card *card, struct cdi_edits *out, struct hm_err *e)
{
	const struct cdi_device *device = d->spec != NULL ? find_driver_device(d->spec, card) : NULL;
	char path[64];

	if (device != NULL)
		return append(out, &device->edits, e);
	hm_fmt(path, sizeof path, "/dev/nvidia%u", card->minor);
	return add_node(d, path, true, out, e);
}

int driver_edits_mig(struct driver_edits *d, const struct card *card, const struct claim_card *mig, bool beside,
		     struct cdi_edits *out, struct hm_err *e)
{
	const struct mig_node node = { card->minor, mig->gi, mig->ci };
	const struct cdi_device *device;

	if (d->options->nvidia_cdi_spec != NULL && read_driver_spec(d, e) < 0)
		return -e->code;
	device = d->spec != NULL ? cdi_spec_device(d->spec, mig->mig) : NULL;
	if (device != NULL)
		return append(out, &device->edits, e);
	if (!beside && mig_card(d, card, out, e) < 0)
		return -e->code;
	return mig_nodes_add(d->options->mig_minors, node_root(d), &node, out, e);
}
