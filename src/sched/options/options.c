#include "sched/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "core/check.h"
#include "sched/options/ignored.h"
#include "sched/options/options_table.h"

static const struct sched_options defaults = {
	.http_bind = "127.0.0.1:8080",
	.extender_clients = "local",
	.metrics_bind_address = ":9395",
	.scheduler_name = "",
	.node_policy = "binpack",
	.gpu_policy = "spread",
	.node_lock_timeout_ms = 300000,
	.node_lock_retry_ms = 28000,
	.force_overwrite_default_scheduler = true,
	.read_header_ms = 15000,
	.read_ms = 60000,
	.idle_ms = 120000,
	.max_connections = 1000,
	.shutdown_delay_ms = 5000,
	.log_level = "INFO",
	.signature = "require",
	.leader_elect_by = "follow",
	.lease_duration_ms = 15000,
	.lease_renew_ms = 10000,
	.lease_retry_ms = 2000,
};

void sched_options_init(struct sched_options *o, struct option_spec table[SCHED_OPTION_COUNT])
{
	*o = defaults;
	sched_options_table(o, table);
}

void sched_options_fini(struct sched_options *o)
{
	device_config_free(HM_STEAL(o->device));
	texts_free(HM_STEAL(o->told));
	str_fini(&o->ignored);
	free(HM_STEAL(o->argv));
}

int sched_options_set_log(const struct sched_options *o, struct hm_err *e)
{
	log_set_verbosity((int)o->v);
	return log_set_level_name(o->log_level, e);
}

static bool given(const char *text)
{
	return text != NULL && *text != '\0';
}

static int check(const struct sched_options *o, struct hm_err *e)
{
	/* HAMi serves plain HTTP then: a key that was forgotten is nothing to pass over. */
	if (given(o->cert_file) != given(o->key_file))
		return hm_err_set(e, HM_EINVAL, "--%s without --%s: HTTPS needs both",
				  given(o->cert_file) ? "cert_file" : "key_file",
				  given(o->cert_file) ? "key_file" : "cert_file");
	if (given(o->client_ca_file) && !given(o->cert_file))
		return hm_err_set(e, HM_EINVAL,
				  "--client-ca-file: only HTTPS has client certificates; see --cert_file");
	if (o->leader_elect && !given(o->leader_elect_name))
		return hm_err_set(e, HM_EINVAL, "--leader-elect needs --leader-elect-resource-name");
	return 0;
}

int sched_device_config(const char *path, struct texts *told, struct device_config **out, struct hm_err *e)
{
	static const char nothing[] = "nvidia: {}";

	if (given(path))
		return device_config_read(path, told, out, e);
	return device_config_parse(nothing, sizeof nothing - 1, "", NULL, out, e);
}

int sched_options_read(struct sched_options *o, const struct option_spec table[SCHED_OPTION_COUNT], int argc,
		       char **argv, struct hm_err *e)
{
	int operand, r;

	o->told = texts_new();
	o->argv = calloc((size_t)argc + 1, sizeof *o->argv);
	if (o->told == NULL || o->argv == NULL)
		return hm_err_set(e, HM_ENOMEM, "options");
	argc = ignored_flags_drop(argc, argv, o->argv, &o->ignored);
	r = options_parse(table, SCHED_OPTION_COUNT, argc, o->argv, &operand, e);
	if (r != OPTIONS_RUN)
		return r;
	if (operand < argc)
		return hm_err_set(e, HM_EINVAL, "unexpected argument \"%s\"; see --help", o->argv[operand]);
	if (check(o, e) < 0 || sched_device_config(o->device_config_file, o->told, &o->device, e) < 0)
		return -e->code;
	return OPTIONS_RUN;
}
