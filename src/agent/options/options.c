#include "agent/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "agent/options/config.h"
#include "agent/options/hami_files.h"
#include "agent/options/mig_nodes.h"
#include "base/log.h"
#include "contract/hami.h"
#include "contract/host.h"
#include "contract/names.h"
#include "core/check.h"
#include "hami/device_config.h"

static const struct agent_options defaults = {
	.binding = "auto",
	.slicing = "static",
	.resource_name = HM_RESOURCE_VGPU,
	.cores_per_device = 4,
	.enable_topology = true,
	.kubelet_socket = HM_DEVICE_PLUGIN_DIR "/" HM_KUBELET_SOCKET,
	.pod_resources_socket = HM_POD_RESOURCES_SOCKET,
	.state_dir = HM_STATE_DIR,
	.cdi_dir = HM_CDI_DIR,
	.mig_minors = MIG_MINORS,
	.log_level = "INFO",
	.signature = "require",
	.kube_qps = 20,
	.device_health_checks = "all",
	.health_recovery_seconds = 60,
};

/* What files said before is forgotten; the texts stay. */
static void set_defaults(struct agent_options *o, bool hami)
{
	const struct agent_options before = *o;

	hami_options_fini(&o->hami);
	*o = defaults;
	o->texts = before.texts;
	o->told = before.told;
	o->argc = before.argc;
	o->argv = before.argv;
	hami_options_defaults(&o->hami);
	if (!hami)
		return;
	o->resource_name = HAMI_RESOURCE_GPU;
	o->fail_on_init_error = true;
	o->enable_topology = false;
}

void agent_options_init(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT])
{
	*o = (struct agent_options) { 0 };
	set_defaults(o, false);
	agent_options_table(o, table);
	hami_options_table(&o->hami, table + AGENT_OWN_OPTION_COUNT);
}

void agent_options_fini(struct agent_options *o)
{
	hami_options_fini(&o->hami);
	texts_free(HM_STEAL(o->texts));
	texts_free(HM_STEAL(o->told));
}

int agent_options_set_log(const struct agent_options *o, struct hm_err *e)
{
	log_set_verbosity((int)o->v);
	return log_set_level_name(o->log_level, e);
}

bool agent_is_hami(const struct agent_options *o)
{
	return strcmp(o->mode, "hami") == 0;
}

bool agent_binds_late(const struct agent_options *o)
{
	return strcmp(o->binding, "classic") != 0;
}

struct slots_config agent_slots_config(const struct agent_options *o)
{
	return (struct slots_config) { o->cores_per_device, o->memory_mb_per_core,
				       strcmp(o->slicing, "static") == 0 ? SLICING_STATIC : SLICING_DYNAMIC,
				       o->oversubscribe };
}

static int make_texts(struct agent_options *o, struct hm_err *e)
{
	if (o->texts == NULL)
		o->texts = texts_new();
	if (o->told == NULL)
		o->told = texts_new();
	return o->texts != NULL && o->told != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "options");
}

static int check(const void *arg, struct hm_err *e)
{
	return agent_options_check(arg, e);
}

/* `places`: only to find those; what flags said before is not the file's fault. */
static int read_config(struct agent_options *o, const char *path, bool places, const struct option_spec *table,
		       struct hm_err *e)
{
	const bool hami = !places && agent_is_hami(o);
	const struct config_target to = {
		table, AGENT_OPTION_COUNT, o->texts, o->told, hami, places ? NULL : check, o
	};

	return path == NULL ? 0 : config_read(path, &to, e);
}

/* What decides on the layers below: the mode on defaults, and where HAMi's files are. All may stand in --config. */
struct places {
	const char *config, *mode;
	struct hami_places hami;
};

static void note_places(const struct agent_options *o, struct places *p)
{
	if (p->mode == NULL)
		p->mode = o->mode;
	if (p->hami.device_config == NULL)
		p->hami.device_config = o->hami.config_file;
	if (p->hami.node_name == NULL)
		p->hami.node_name = o->node_name;
	p->hami.node_config = o->hami.node_config;
}

/* Files below environment below flags, over the defaults of the mode. `o` holds what environment and flags say. */
static int read_layers(struct agent_options *o, const struct option_spec *table, int argc, char **argv,
		       struct hm_err *e)
{
	struct places p = { .config = o->config };
	bool hami;

	note_places(o, &p);
	if (p.config != NULL) {
		if (read_config(o, p.config, true, table, e) < 0 ||
		    options_parse(table, AGENT_OPTION_COUNT, argc, argv, NULL, e) < 0)
			return -e->code;
		note_places(o, &p);
	}
	if (p.mode == NULL)
		p.mode = p.hami.device_config != NULL && p.hami.device_config[0] != '\0' ? "hami" : "slices";
	hami = strcmp(p.mode, "hami") == 0;
	set_defaults(o, hami);
	o->mode = p.mode;
	if (hami && hami_files_read(o, table, &p.hami, e) < 0)
		return -e->code;
	if (read_config(o, p.config, false, table, e) < 0 ||
	    options_parse(table, AGENT_OPTION_COUNT, argc, argv, NULL, e) < 0)
		return -e->code;
	/* HAMi's chart always passes --disable-core-limit=false, which HAMi reads nowhere: the file's true counts. */
	if (hami && o->hami.device->disable_core_limit)
		o->hami.disable_core_limit = true;
	return 0;
}

int agent_options_read(struct agent_options *o, struct option_spec table[AGENT_OPTION_COUNT], int argc, char **argv,
		       struct hm_err *e)
{
	int operand = argc, r;

	o->argc = argc;
	o->argv = argv;
	/* This pass finds the files, the mode and --help. */
	r = options_parse(table, AGENT_OPTION_COUNT, argc, argv, &operand, e);
	if (r != OPTIONS_RUN)
		return r;
	if (operand < argc && strcmp(argv[operand], "version") == 0)
		return OPTIONS_VERSION_WORD;
	if (operand < argc)
		return hm_err_set(e, HM_EINVAL, "unexpected argument \"%s\"; see --help", argv[operand]);
	r = make_texts(o, e);
	if (r == 0)
		r = read_layers(o, table, argc, argv, e);
	if (r == 0)
		r = agent_options_check(o, e);
	return r < 0 ? r : OPTIONS_RUN;
}
