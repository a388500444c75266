#include "agent/container/hami_cdi.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/container.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "io/file.h"

enum { PATH_BYTES = 512, SPEC_MAX_BYTES = 8 * 1024 * 1024 };

/* What NVIDIA's toolkit gives for each: nodes by pattern, and files. */
static const struct extra {
	enum hami_extra which;
	const char *class, *device;
	const char *nodes[2], *files[2];
} extras[] = {
	{ HAMI_EXTRA_IMEX, HAMI_CDI_CLASS_IMEX, "0", { HAMI_DEV_IMEX_CHANNEL }, { NULL } },
	{ HAMI_EXTRA_GDRCOPY, HAMI_CDI_CLASS_GDRCOPY, HAMI_CDI_ALL, { "/dev/gdrdrv" }, { NULL } },
	{ HAMI_EXTRA_GDS,
	  HAMI_CDI_CLASS_GDS,
	  HAMI_CDI_ALL,
	  { "/dev/nvidia-fs*" },
	  { "/run/udev", "/etc/cufile.json" } },
	{ HAMI_EXTRA_MOFED,
	  HAMI_CDI_CLASS_MOFED,
	  HAMI_CDI_ALL,
	  { "/dev/infiniband/uverbs*", "/dev/infiniband/rdma_cm" },
	  { NULL } },
};

static int no_memory(struct hm_err *e)
{
	return hm_err_set(e, HM_ENOMEM, "CDI spec");
}

/* ---- extras */

static int add_nodes(const char *root, const char *pattern, struct cdi_edits *out, struct hm_err *e)
{
	char host[PATH_BYTES];
	glob_t found;
	int r = 0;

	hm_fmt(host, sizeof host, "%s%s", root, pattern);
	if (glob(host, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		if (cdi_add_node(out, found.gl_pathv[i] + strlen(root), found.gl_pathv[i], "rw") < 0)
			r = no_memory(e);
	globfree(&found);
	return r;
}

static int add_extra(const struct hami_answer_config *a, const struct extra *x, struct cdi_edits *out, struct hm_err *e)
{
	const char *root = a->dev_root != NULL && strcmp(a->dev_root, "/") != 0 ? a->dev_root : "";
	size_t nodes = out->node_count;
	char host[PATH_BYTES];

	for (size_t i = 0; i < HM_COUNT(x->nodes) && x->nodes[i] != NULL; i++)
		if (add_nodes(root, x->nodes[i], out, e) < 0)
			return -e->code;
	for (size_t i = 0; i < HM_COUNT(x->files) && x->files[i] != NULL && out->node_count > nodes; i++) {
		hm_fmt(host, sizeof host, "%s%s", root, x->files[i]);
		if (access(host, F_OK) == 0 && cdi_add_mount(out, host, x->files[i], true) < 0)
			return no_memory(e);
	}
	return 0;
}

int hami_cdi_add_extras(const struct hami_answer_config *a, struct cdi_edits *out, struct hm_err *e)
{
	for (size_t i = 0; i < HM_COUNT(extras); i++)
		if ((a->extras & extras[i].which) != 0 && add_extra(a, &extras[i], out, e) < 0)
			return -e->code;
	return 0;
}

/* ---- files */

static void spec_path(const char *folder, const char *class, char out[PATH_BYTES])
{
	hm_fmt(out, PATH_BYTES, "%s/" HAMI_CDI_VENDOR "-%s.json", folder, class);
}

/* Runtimes look again whenever a file in the folder changes. */
static int write_if_new(const char *path, const struct cdi_spec *spec, struct hm_err *e)
{
	hm_auto_str text = { 0 }, old = { 0 };
	struct hm_err ignored;

	if (cdi_spec_write_all(spec, &text, e) < 0)
		return hm_err_wrap(e, "write %s", path);
	if (file_read(path, SPEC_MAX_BYTES, &old, &ignored) == 0 && old.n == text.n &&
	    memcmp(str_text(&old), str_text(&text), text.n) == 0)
		return 0;
	return file_replace(path, str_text(&text), text.n, 0644, e);
}

static int write_extra(const struct hami_answer_config *a, const struct extra *x, const char *folder, bool *there,
		       struct hm_err *e)
{
	char path[PATH_BYTES], kind[64];
	struct cdi_device device = { (char *)x->device, { 0 } };
	const struct cdi_spec spec = { .kind = kind, .devices = &device, .device_count = 1 };
	int r = 0;

	*there = false;
	spec_path(folder, x->class, path);
	hm_fmt(kind, sizeof kind, HAMI_CDI_VENDOR "/%s", x->class);
	if ((a->extras & x->which) != 0)
		r = add_extra(a, x, &device.edits, e);
	*there = r == 0 && device.edits.node_count > 0;
	if (*there)
		r = write_if_new(path, &spec, e);
	else if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = hm_err_errno(e, errno, "remove %s", path);
	cdi_edits_fini(&device.edits);
	return r;
}

/* ---- cards */

static void spec_fini(struct cdi_spec *s)
{
	for (size_t i = 0; i < s->device_count; i++) {
		free(s->devices[i].name);
		cdi_edits_fini(&s->devices[i].edits);
	}
	free(s->devices);
	cdi_edits_fini(&s->edits);
}

/* Its edits are made, or failed with r; what is not there is left out. */
static int add_device(struct cdi_spec *out, struct cdi_device *made, const char *name, int r, struct hm_err *e)
{
	if (r == 0 && (made->name = strdup(name)) == NULL)
		r = no_memory(e);
	if (r == 0) {
		out->devices[out->device_count++] = *made;
		return 0;
	}
	cdi_edits_fini(&made->edits);
	if (r != -HM_EAGAIN)
		return r;
	log_warn("a card or MIG device has no CDI device of its own", KV("uuid", name), KV_ERR(e));
	return 0;
}

static int add_mig(struct driver_edits *driver, const struct card *card, const struct mig_device *mig,
		   struct cdi_spec *out, struct hm_err *e)
{
	struct claim_card held = { .gi = mig->gi, .ci = mig->ci };
	struct cdi_device device = { 0 };
	int r;

	hm_fmt(held.mig, sizeof held.mig, "%s", mig->uuid);
	r = driver_edits_mig(driver, card, &held, false, &device.edits, e);
	return add_device(out, &device, mig->uuid, r, e);
}

/* A card in MIG mode is none that programs can use as a whole. */
static int add_card(const struct hami_answer_config *a, struct driver_edits *driver, const struct card *card,
		    struct cdi_spec *out, struct hm_err *e)
{
	struct cdi_device device = { 0 };
	char name[HM_UUID_BYTES];

	for (size_t i = 0; i < card->mig.device_count; i++)
		if (add_mig(driver, card, &card->mig.devices[i], out, e) < 0)
			return -e->code;
	if (card->mig_enabled)
		return 0;
	hami_answer_device_id(a, card, name);
	return add_device(out, &device, name, driver_edits_card(driver, card, &device.edits, e), e);
}

static size_t most_devices(const struct inventory *inv)
{
	size_t n = inv->count;

	for (size_t i = 0; i < inv->count; i++)
		n += inv->cards[i].mig.device_count;
	return n;
}

static int make_spec(const struct hami_answer_config *a, struct driver_edits *driver, const struct inventory *inv,
		     struct cdi_spec *out, struct hm_err *e)
{
	if (driver_edits_common(driver, true, &out->edits, e) < 0)
		return -e->code;
	out->devices = calloc(most_devices(inv) + 1, sizeof *out->devices);
	if (out->devices == NULL)
		return no_memory(e);
	for (size_t i = 0; i < inv->count; i++)
		if (add_card(a, driver, &inv->cards[i], out, e) < 0)
			return -e->code;
	return cdi_add_env(&out->edits, HM_ENV_VISIBLE_DEVICES, "void") < 0 ? no_memory(e) : 0;
}

int hami_cdi_write(const struct hami_answer_config *a, struct driver_edits *driver, const struct inventory *inv,
		   const char *folder, unsigned *extra_specs, struct hm_err *e)
{
	struct cdi_spec spec = { .kind = (char *)HAMI_CDI_VENDOR "/" HAMI_CDI_CLASS_GPU };
	char path[PATH_BYTES];
	int r;

	*extra_specs = 0;
	if (file_mkdirs(folder, 0755, e) < 0)
		return -e->code;
	file_remove_temporaries(folder, HAMI_CDI_VENDOR "-");
	spec_path(folder, HAMI_CDI_CLASS_GPU, path);
	r = make_spec(a, driver, inv, &spec, e);
	if (r == 0 && spec.device_count > 0)
		r = write_if_new(path, &spec, e);
	spec_fini(&spec);
	for (size_t i = 0; i < HM_COUNT(extras) && r == 0; i++) {
		bool there;

		r = write_extra(a, &extras[i], folder, &there, e);
		*extra_specs |= r == 0 && there ? extras[i].which : 0;
	}
	return r;
}
