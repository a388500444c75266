/* Attaching a process:
 *  1. Read /run/hami-vgpu/limits. Not there: take the limits of the environment; none there either: VGPU_OFF.
 *  2. Map the container's region. With a limit file it is the agent's to make, and a missing one has been deleted:
 * making another would give the container its limit twice.
 *  3. Return the charge of a former image of this process (exec), then claim a slot.
 * Where any step fails nothing may be allocated (VGPU_REFUSE), and the region says why if there is one. Failures that
 * may pass (no file descriptor left, no memory, no free slot) are tried again at the next call. */
#include "vgpu/state.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contract/container.h"
#include "core/fmt.h"
#include "region/region.h"
#include "region/shared.h"
#include "vgpu/log.h"

enum { PHASE_NEW, PHASE_ATTACHING, PHASE_READY };
enum { REAP_WAIT_MS = 50, QUERY_WAIT_MS = 5 };

#define ENV_REGION_FILE "hami-vgpu.region"

static struct vgpu *_Atomic state;

/* A page that is zero again in a forked child (Linux 4.14); before that the pid tells. */
static struct vgpu *make_state(void)
{
	struct vgpu *none = NULL, *v;

	v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v == MAP_FAILED)
		return NULL;
	if (madvise(v, sizeof *v, MADV_WIPEONFORK) < 0)
		v->check_pid = true;
	if (__atomic_compare_exchange_n((struct vgpu **)&state, &none, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return v;
	munmap(v, sizeof *v);
	return none;
}

static bool is_own_leftover(const struct region_slot_id *id, void *arg)
{
	const struct process_id *me = arg;

	return id->who == slot_who(me->pid, me->start_time) &&
	       (id->pid_namespace == me->pid_namespace || id->pid_namespace == 0);
}

/* Looking at all processes takes a while, and many requests may be refused at once. Whose turn it is after a look of
 * its pid namespace that began later than the request came, and is done, need not look again. */
struct look {
	struct region_stats *stats;
	uint32_t pid_namespace;
	uint32_t before, number; /* looks begun when the request came; this one, 0: none */
	bool has_turn, spared;
};

static void take_turn(struct look *l)
{
	uint64_t looked = shared_load(&l->stats->looked);

	l->has_turn = true;
	l->spared = (uint32_t)(looked >> 32) == l->pid_namespace && (int32_t)((uint32_t)looked - l->before) > 0;
	if (!l->spared)
		l->number = (uint32_t)atomic_fetch_add(&l->stats->looks, 1) + 1;
}

static bool is_dead(const struct region_slot_id *id, void *arg)
{
	struct look *l = arg;

	if (!l->has_turn)
		take_turn(l);
	if (l->spared || (id->pid_namespace != 0 && id->pid_namespace != l->pid_namespace))
		return false; /* the latter are not for us to tell */
	return !process_id_alive(id->pid, id->start_time);
}

static int reap(struct vgpu *v, uint32_t pid_namespace, unsigned wait_ms, struct hm_err *e)
{
	struct region_stats *stats = &v->map.r->stats;
	struct look l = { stats, pid_namespace, .before = (uint32_t)shared_load(&stats->looks) };
	int r = region_map_reap(&v->map, wait_ms, is_dead, &l, e);

	if (r >= 0 && l.number != 0)
		shared_store(&stats->looked, (uint64_t)pid_namespace << 32 | l.number);
	return r;
}

static bool has_leftover(const struct region_layout *r, struct process_id *me)
{
	for (unsigned i = 0; i < REGION_SLOTS; i++) {
		struct region_slot_id id = slot_id(&r->heads[i]);

		if (is_own_leftover(&id, me))
			return true;
	}
	return false;
}

static int claim_slot(struct vgpu *v, struct hm_err *e)
{
	struct process_id me = process_id_self();

	if (has_leftover(v->map.r, &me) && region_map_reap(&v->map, REAP_WAIT_MS, is_own_leftover, &me, e) < 0)
		return -HM_EAGAIN;
	if (slot_claim(v->map.r, &me, &v->ledger))
		return 0;
	if (reap(v, me.pid_namespace, REAP_WAIT_MS, e) >= 0 && slot_claim(v->map.r, &me, &v->ledger))
		return 0;
	return hm_err_set(e, HM_EAGAIN, "%d processes of this container use cards already", REGION_SLOTS);
}

static int use_limits(struct vgpu *v, const struct limits *l, struct hm_err *e)
{
	int r = region_map_file(HM_CONTAINER_REGION, &v->map, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->count; i++) {
		v->cards[i].limit = l->cards[i];
		v->cards[i].region_card = region_map_card(&v->map, &l->cards[i], false);
		if (v->cards[i].region_card < 0)
			vgpu_trouble(v, "card %s is in the limit file but not in the region", l->cards[i].uuid);
	}
	v->card_count = (uint32_t)l->count;
	v->priority = l->priority;
	v->policy = l->policy;
	v->oversubscribe = l->oversubscribe;
	return claim_slot(v, e);
}

/* In the folder of HAMi's shared cache, which its plugin mounts for all processes of a container. "": there is none. A
 * path too long is refused: by a region of its own each process would have the limit to itself. */
static int env_region_path(char *out, size_t cap, struct hm_err *e)
{
	const char *hint = env_find(environ, HM_ENV_SHARED_CACHE), *slash;
	size_t n;

	out[0] = '\0';
	if (hint == NULL || hint[0] == '\0')
		return 0;
	slash = strrchr(hint, '/');
	n = slash != NULL ? hm_fmt(out, cap, "%.*s/%s", (int)(slash - hint), hint, ENV_REGION_FILE)
			  : hm_fmt(out, cap, "%s", ENV_REGION_FILE);
	return n < cap ? 0 : hm_err_set(e, HM_EINVAL, HM_ENV_SHARED_CACHE "=%.32s...: the path is too long", hint);
}

static int map_env_region(struct vgpu *v, struct hm_err *e)
{
	const struct limits none = { .priority = v->env.priority,
				     .policy = v->env.policy,
				     .oversubscribe = v->env.oversubscribe };
	char path[REGION_PATH_BYTES];
	int r = env_region_path(path, sizeof path, e);

	if (r < 0)
		return r;
	if (path[0] == '\0')
		return region_map_private(&none, &v->map, e);
	r = region_map_file(path, &v->map, e);
	if (r != -HM_ENOTFOUND)
		return r;
	r = region_create(path, &none, e);
	return r < 0 ? r : region_map_file(path, &v->map, e);
}

static int use_environment(struct vgpu *v, struct hm_err *e)
{
	struct hm_err region_error;
	int r = env_limits_read(environ, &v->env, e);

	v->from_env = true;
	if (r == 0 && !v->env.any)
		return 0;
	if (r < 0) {
		if (map_env_region(v, &region_error) < 0)
			v->map.r = NULL; /* nowhere to say it */
		return r;
	}
	v->priority = v->env.priority;
	v->policy = v->env.policy;
	v->oversubscribe = v->env.oversubscribe;
	r = map_env_region(v, e);
	return r < 0 ? r : claim_slot(v, e);
}

static int read_limits(struct vgpu *v, struct hm_err *e)
{
	char text[LIMIT_FILE_MAX_BYTES + 1];
	long n = read_small_file(HM_CONTAINER_LIMITS, text, sizeof text);
	struct hm_err region_error;
	struct limits l;
	int r;

	if (n == -ENOENT || n == -ENOTDIR)
		return use_environment(v, e);
	if (n == -EMFILE || n == -ENFILE || n == -ENOMEM)
		return hm_err_set(e, HM_EAGAIN, "read %s: %s", HM_CONTAINER_LIMITS, hm_errno_text((int)-n));
	r = n < 0 ? hm_err_errno(e, (int)-n, "read %s", HM_CONTAINER_LIMITS) : limits_parse(text, (size_t)n, &l, e);
	if (r == 0)
		return use_limits(v, &l, e);
	if (n >= 0)
		hm_err_wrap(e, "%s", HM_CONTAINER_LIMITS);
	if (region_map_file(HM_CONTAINER_REGION, &v->map, &region_error) < 0)
		v->map.r = NULL;
	return r;
}

/* True: try again at the next call; until then the mode is what it was, VGPU_REFUSE: a thread that has v from a try
 * before this one finds no limit that is half read. */
static bool attach(struct vgpu *v)
{
	struct hm_err e = { 0 };
	int r;

	v->pid = (uint32_t)syscall(SYS_getpid);
	r = read_limits(v, &e);
	if (r == 0) {
		v->mode = v->from_env && !v->env.any ? VGPU_OFF : VGPU_ON;
		return false;
	}
	if (!v->told)
		vgpu_trouble(v, "no allocations: %s", e.msg);
	v->told = true;
	if (r != -HM_EAGAIN && r != -HM_ENOMEM)
		return false;
	region_unmap(&v->map);
	return true;
}

static struct vgpu *attach_once(struct vgpu *v)
{
	uint32_t phase = PHASE_NEW;
	bool again;

	if (v->check_pid && v->phase == PHASE_READY && v->pid != (uint32_t)syscall(SYS_getpid)) {
		memset(v, 0, sizeof *v); /* a forked child on an old kernel */
		v->check_pid = true;
	}
	while (!atomic_compare_exchange_strong(&v->phase, &phase, PHASE_ATTACHING)) {
		if (phase == PHASE_READY)
			return v->mode == VGPU_OFF ? NULL : v;
		phase = PHASE_NEW;
		sched_yield();
	}
	again = attach(v);
	atomic_store_explicit(&v->phase, again ? PHASE_NEW : PHASE_READY, memory_order_release);
	return v->mode == VGPU_OFF ? NULL : v;
}

static struct vgpu refuses_all; /* where there is no memory for a state */

static __attribute__((noinline)) struct vgpu *get_slowly(struct vgpu *v)
{
	int saved = errno;

	if (v == NULL)
		v = make_state();
	v = v != NULL ? attach_once(v) : &refuses_all;
	errno = saved;
	return v;
}

struct vgpu *vgpu_get(void)
{
	struct vgpu *v = __atomic_load_n((struct vgpu **)&state, __ATOMIC_ACQUIRE);

	if (HM_UNLIKELY(v == NULL || v->check_pid ||
			atomic_load_explicit(&v->phase, memory_order_acquire) != PHASE_READY))
		return get_slowly(v);
	return v->mode == VGPU_OFF ? NULL : v;
}

/* The region may have been lost under us; from here on nothing may be allocated. */
static void lost(struct vgpu *v)
{
	if (v->mode == VGPU_REFUSE)
		return;
	v->mode = VGPU_REFUSE;
	vgpu_trouble(v, "no more allocations: process %u lost its slot in the region", v->pid);
}

static bool still_there(struct vgpu *v)
{
	struct hm_err e = { 0 };
	int saved = errno;
	int r = region_map_check(&v->map, &e);

	errno = saved;
	if (r == -HM_EPROTO || r == -HM_ENOTFOUND) {
		v->mode = VGPU_REFUSE;
		region_map_leave(&v->map); /* touching what was cut off would end the process */
		vgpu_trouble(v, "no more allocations: %s", e.msg);
		return false;
	}
	return true;
}

static bool can_charge(const struct vgpu *v, const struct vgpu_card *card)
{
	return v->mode == VGPU_ON && card != NULL && card->region_card >= 0;
}

bool vgpu_try_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	enum ledger_result r;

	if (!can_charge(v, card))
		return false;
	r = ledger_reserve(&v->ledger, (unsigned)card->region_card, card->limit.memory_bytes, bytes);
	if (r == LEDGER_LOST)
		lost(v);
	return r == LEDGER_OK;
}

bool vgpu_charge_after_reaping(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	int saved = errno;
	bool charged = false;

	if (can_charge(v, card) && still_there(v)) {
		reap(v, vgpu_pid_namespace(v), REAP_WAIT_MS, NULL);
		charged = vgpu_try_charge(v, card, bytes);
		if (!charged)
			atomic_fetch_add_explicit(&v->map.r->counters[card->region_card].refused, 1,
						  memory_order_relaxed);
	}
	errno = saved;
	return charged;
}

void vgpu_charge_taken(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	if (v->map.r == NULL || card == NULL || card->region_card < 0)
		return;
	if (ledger_reserve(&v->ledger, (unsigned)card->region_card, REGION_MAX_BYTES, bytes) != LEDGER_OK)
		lost(v);
}

void vgpu_uncharge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	if (v->map.r == NULL || card == NULL || card->region_card < 0)
		return;
	if (ledger_release(&v->ledger, (unsigned)card->region_card, bytes) != LEDGER_OK)
		lost(v);
}

uint64_t vgpu_card_used(struct vgpu *v, struct vgpu_card *card)
{
	int saved = errno;

	if (v->mode != VGPU_ON || card->region_card < 0 || !still_there(v))
		return card->limit.memory_bytes;
	reap(v, vgpu_pid_namespace(v), QUERY_WAIT_MS, NULL);
	errno = saved;
	return ledger_used(v->map.r, (unsigned)card->region_card);
}

void vgpu_count_unknown_entry(void)
{
	struct vgpu *v = vgpu_get();

	if (v != NULL && v->mode == VGPU_ON && v->map.r != NULL)
		atomic_fetch_add_explicit(&v->map.r->stats.unknown_entry_points, 1, memory_order_relaxed);
}

void vgpu_trouble(struct vgpu *v, const char *fmt, ...)
{
	char text[REGION_TROUBLE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	hm_vfmt(text, sizeof text, fmt, ap);
	va_end(ap);
	if (v->map.r != NULL)
		region_trouble(v->map.r, text);
	vgpu_log(text);
}
