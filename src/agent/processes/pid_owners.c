#include "agent/processes/pid_owners.h"

#include <string.h>

#include "agent/processes/mounts.h"
#include "contract/host.h"
#include "core/cursor.h"
#include "core/fmt.h"

struct search {
	const struct str *alloc;
	uint64_t number;
};

/* "<name of the alloc folder>/<number>/usage", wherever it is mounted. */
static bool is_usage(void *arg, const char *file, const char *at)
{
	struct search *s = arg;
	struct cur c = cur_of(file, strlen(file));

	(void)at;
	cur_word(&c, str_text(s->alloc));
	cur_word(&c, "/");
	s->number = cur_u64(&c, '/', UINT64_MAX);
	cur_word(&c, HM_ALLOC_USAGE);
	if (!cur_at_end(&c))
		s->number = 0;
	return s->number == 0;
}

static void find_alloc(struct pid_owners *o)
{
	hm_auto(own_mounts) *own = NULL;
	struct hm_err e;

	if (own_mounts_new(&own, &e) < 0 || !own_mounts_name(own, o->alloc, &o->name))
		str_clear(&o->name);
}

static uint64_t look(struct pid_owners *o, unsigned pid)
{
	struct search search = { &o->name, 0 };
	char text[16];

	if (o->name.n == 0)
		find_alloc(o);
	hm_fmt(text, sizeof text, "%u", pid);
	if (o->name.n == 0 || !mounts_visit(o->proc, text, &o->text, is_usage, &search))
		return 0;
	return search.number;
}

uint64_t pid_owners_number(struct pid_owners *o, unsigned pid, uint64_t now_ns)
{
	__typeof__(&o->known[0]) at = &o->known[pid % PID_OWNERS];

	if (at->pid != pid || at->until_ns <= now_ns) {
		at->pid = pid;
		at->number = look(o, pid);
		at->until_ns = now_ns + PID_OWNERS_KEEP_MS * UINT64_C(1000000);
	}
	return at->number;
}

void pid_owners_fini(struct pid_owners *o)
{
	str_fini(&o->name);
	str_fini(&o->text);
}
