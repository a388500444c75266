#include "sched/verbs/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"

struct admission {
	struct webhook_rules rules;
	struct admission_config config;
	char *names; /* owned: --annotation-writers, cut at the commas */
	const char **writers;
	size_t writer_count, writer_cap;
	struct admission_stats stats;
};

static struct cluster *known_cluster(const struct admission *a)
{
	return a->config.known(a->config.arg) ? a->config.cluster : NULL;
}

/* A limit that the namespace does not have is left out. */
static void say_amounts(const struct quota_amount *asked, const struct quota_amount *room, char *why, size_t why_bytes)
{
	size_t n = (size_t)snprintf(why, why_bytes, "the pod asks for %lld MiB and %lld percent of cards' cores; left:",
				    (long long)asked->memory_mib, (long long)asked->cores);

	if (room->memory_mib != QUOTA_NO_LIMIT && n < why_bytes)
		n += (size_t)snprintf(why + n, why_bytes - n, " %lld MiB", (long long)room->memory_mib);
	if (room->cores != QUOTA_NO_LIMIT && n < why_bytes)
		(void)snprintf(why + n, why_bytes - n, " %lld percent", (long long)room->cores);
}

/* A percentage of memory counts as that of the smallest card, which is the least that it can become. */
static bool quota_says(void *arg, const char *name_space, const struct card_ask *asks, size_t count, char *why,
		       size_t why_bytes)
{
	struct cluster *cluster = known_cluster(arg);
	struct quota_amount room, asked;

	if (cluster == NULL)
		return true;
	room = quotas_room(cluster_quotas(cluster), name_space);
	asked = quota_of_asks(asks, count, cluster_extremes(cluster).least_memory_mib);
	if (quota_fits(room, asked))
		return true;
	say_amounts(&asked, &room, why, why_bytes);
	return false;
}

static struct webhook_largest largest(void *arg)
{
	struct cluster *cluster = known_cluster(arg);
	struct cluster_extremes x = cluster != NULL ? cluster_extremes(cluster) : (struct cluster_extremes) { 0 };

	return (struct webhook_largest) { x.most_memory_mib, x.most_cores, x.any_mig ? 0 : (int64_t)x.most_cards };
}

static bool type_known(void *arg, const char *part)
{
	struct cluster *cluster = known_cluster(arg);
	const char *type = NULL;
	size_t at = 0;

	while (cluster != NULL && texts_next(cluster_texts(cluster), &at, &type))
		if (strcasestr(type, part) != NULL)
			return true;
	return type == NULL;
}

static int read_writers(const char *list, struct admission *a, struct hm_err *e)
{
	char *p;

	a->names = strdup(list == NULL ? "" : list);
	if (a->names == NULL)
		return hm_err_set(e, HM_ENOMEM, "--annotation-writers");
	for (p = a->names; p != NULL && *p != '\0';) {
		const char *name = p;

		p = strchr(p, ',');
		if (p != NULL)
			*p++ = '\0';
		if (*name != '\0' && !HM_PUSH(a->writers, a->writer_count, a->writer_cap, name))
			return hm_err_set(e, HM_ENOMEM, "--annotation-writers");
	}
	return 0;
}

int admission_new(const struct admission_config *config, struct admission **out, struct hm_err *e)
{
	const struct sched_options *o = config->options;
	hm_auto(admission) *a = calloc(1, sizeof *a);

	if (a == NULL)
		return hm_err_set(e, HM_ENOMEM, "admission");
	if (read_writers(o->annotation_writers, a, e) < 0)
		return -e->code;
	a->config = *config;
	a->rules = (struct webhook_rules) {
		.device = o->device,
		.scheduler_name = o->scheduler_name,
		.force_overwrite_default_scheduler = o->force_overwrite_default_scheduler,
		.writers = a->writers,
		.writer_count = a->writer_count,
		.ask = { quota_says, largest, type_known, a },
	};
	*out = HM_STEAL(a);
	return 0;
}

void admission_free(struct admission *a)
{
	if (a == NULL)
		return;
	free(a->writers);
	free(a->names);
	free(a);
}

const struct webhook_rules *admission_rules(const struct admission *a)
{
	return &a->rules;
}

const struct admission_stats *admission_stats(const struct admission *a)
{
	return &a->stats;
}

void admission_answer(void *arg, struct server_request *r)
{
	struct admission *a = arg;
	struct str answer = { 0 };
	struct webhook_outcome o;
	struct hm_err e;
	size_t n;
	const char *body = server_body(r, &n);

	if (webhook_answer(&a->rules, server_header(r, "Content-Type"), body == NULL ? "" : body, n, &answer, &o, &e) <
	    0) {
		log_warn("an admission request is not answered", KV("why", e.msg));
		a->stats.failed++;
	} else {
		*(o.patched ? &a->stats.patched : o.allowed ? &a->stats.unchanged : &a->stats.refused) += 1;
		a->stats.warnings += o.warnings;
	}
	server_answer(r, 200, SERVER_JSON, &answer); /* 500 where memory was short */
}
