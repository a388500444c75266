/* hami-simd: the simulated node's daemon. hami-simctl up starts it; by hand it stays in the foreground. Prints "ready"
 * on stdout once it serves. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "contract/exit_codes.h"
#include "core/fmt.h"
#include "io/file.h"
#include "io/loop.h"
#include "sim/lib/engine.h"
#include "sim/simd/node_yaml.h"
#include "sim/simd/server.h"

enum { MAX_YAML_BYTES = 1 << 20 };

static const char *dir, *node_path, *clock_name = "wall";

static const struct option_spec specs[] = {
	{ .name = "dir",
	  .env = SIM_ENV_DIR,
	  .kind = OPTION_TEXT,
	  .value = &dir,
	  .help = "where the socket and the state go" },
	{ .name = "node", .kind = OPTION_TEXT, .value = &node_path, .argument = "FILE", .help = "the node's YAML" },
	{ .name = "clock",
	  .kind = OPTION_CHOICE,
	  .value = &clock_name,
	  .choices = "wall|virtual",
	  .help = "which time kernels take" },
};

static int open_state(const char *path, struct sim_node **node, int *fd, struct hm_err *e)
{
	unlink(path);
	*fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (*fd < 0 || fchmod(*fd, 0666) < 0 || ftruncate(*fd, (off_t)sizeof **node) < 0)
		return hm_err_errno(e, errno, "%s", path);
	*node = mmap(NULL, sizeof **node, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return *node != MAP_FAILED ? 0 : hm_err_errno(e, errno, "map %s", path);
}

static void init_state(struct sim_node *n)
{
	uint64_t now;

	n->clock = strcmp(clock_name, "virtual") == 0 ? SIM_CLOCK_VIRTUAL : SIM_CLOCK_WALL;
	n->daemon_pid = (uint32_t)getpid();
	now = sim_clock_now(n);
	n->wall_offset_ns = (int64_t)(clock_wall_ms() * 1000000) - (int64_t)now;
	for (unsigned i = 0; i < n->card_count; i++) {
		struct sim_card *c = &n->cards[i];

		atomic_store(&c->epoch, 1);
		atomic_store(&c->used_bytes, c->info.reserved_bytes);
		atomic_store(&c->peak_bytes, c->info.reserved_bytes);
		atomic_store(&c->engine_ns, now);
		c->sample_begin_ns = now;
		mig_come_up(c);
		c->current = SIM_MAX_PROCESSES - 1; /* the first turn is number 0's */
	}
	n->version = SIM_VERSION;
	n->bytes = sizeof *n;
	n->magic = SIM_MAGIC;
	atomic_store(&n->generation, 1);
	atomic_store(&n->loaded, 1);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static int serve(struct server *s, struct hm_err *e)
{
	struct loop_signal *term = NULL, *intr = NULL;
	int r = server_start(s, e);

	if (r == 0)
		r = loop_signal_new(s->loop, SIGTERM, stop, s->loop, &term, e);
	if (r == 0)
		r = loop_signal_new(s->loop, SIGINT, stop, s->loop, &intr, e);
	if (r == 0) {
		log_info("node is up", KV("node", s->node->name), KV_U64("cards", s->node->card_count),
			 KV("clock", clock_name));
		printf("ready\n");
		fflush(stdout);
		r = loop_run(s->loop, e);
	}
	server_stop(s);
	loop_signal_free(term);
	loop_signal_free(intr);
	return r;
}

static int run(struct hm_err *e)
{
	struct server s = { .dir = dir, .state_fd = -1, .listen_fd = -1 };
	hm_auto(loop) *loop = NULL;
	hm_auto_str yaml = { 0 };
	char path[512];
	int r;

	if (dir == NULL || node_path == NULL)
		return hm_err_set(e, HM_EINVAL, "--dir (or HAMI_SIM_DIR) and --node are needed");
	if (hm_fmt(path, sizeof path, "%s/%s", dir, SIM_STATE_FILE) >= sizeof path)
		return hm_err_set(e, HM_EINVAL, "--dir is too long");
	if ((r = file_read(node_path, MAX_YAML_BYTES, &yaml, e)) < 0 || (r = loop_new(&loop, e)) < 0 ||
	    (r = file_mkdirs(dir, 0755, e)) < 0)
		return r;
	s.loop = loop;
	/* First the socket: it says whether the state there is that of a node that is up. */
	r = server_listen(&s, e);
	if (r < 0)
		return r;
	r = open_state(path, &s.node, &s.state_fd, e);
	if (r == 0 && (r = node_yaml_load(str_text(&yaml), yaml.n, s.node, e)) < 0)
		hm_err_wrap(e, "%s", node_path);
	if (r == 0) {
		init_state(s.node);
		r = serve(&s, e);
	}
	close(s.listen_fd);
	unlink(path);
	if (hm_fmt(path, sizeof path, "%s/%s", dir, SIM_SOCKET) < sizeof path)
		unlink(path);
	return r;
}

int main(int argc, char **argv)
{
	struct hm_err e = { 0 };
	int operand, r = options_parse(specs, HM_COUNT(specs), argc, argv, &operand, &e);

	log_set_clock(clock_wall_ms);
	signal(SIGPIPE, SIG_IGN);
	if (r == OPTIONS_VERSION) {
		puts("hami-simd " HM_VERSION);
		return HM_EXIT_OK;
	}
	if (r == OPTIONS_HELP) {
		options_print_help("hami-simd --dir=DIR --node=NODE.yaml [--clock=wall|virtual]", specs,
				   HM_COUNT(specs));
		return HM_EXIT_OK;
	}
	if (r >= 0 && operand < argc)
		r = hm_err_set(&e, HM_EINVAL, "what is \"%s\"?", argv[operand]);
	if (r >= 0)
		r = run(&e);
	if (r >= 0)
		return HM_EXIT_OK;
	fprintf(stderr, "hami-simd: %s\n", e.msg);
	return -r == HM_EINVAL || -r == HM_EPROTO || -r == HM_ENOTFOUND ? HM_EXIT_USAGE : HM_EXIT_FAILED;
}
