#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/temp.h"

static struct program simd;

void program_start(struct program *p, const char *path, const char *const *args)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		const char *argv[16] = { path };

		for (int i = 0; i < 14 && args[i] != NULL; i++)
			argv[i + 1] = args[i];
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execv(path, (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
}

void program_line(struct program *p, char *line, size_t cap)
{
	size_t n = 0;

	while (n + 1 < cap && read(p->out, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
}

int program_end(struct program *p)
{
	int status;

	close(p->in);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	close(p->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int node_up(void **state)
{
	char line[256];

	temp_setup(state);
	program_start(
		&simd, SIMD_PATH,
		(const char *const[]) { "--dir", temp_path(""), "--node", NODE_PATH, "--clock", "virtual", NULL });
	program_line(&simd, line, sizeof line);
	assert_string_equal(line, "ready");
	setenv("HAMI_SIM_DIR", temp_path(""), 1);
	unsetenv("NVIDIA_VISIBLE_DEVICES");
	unsetenv("CUDA_VISIBLE_DEVICES");
	return 0;
}

int node_down(void **state)
{
	kill(simd.pid, SIGTERM);
	program_end(&simd);
	return temp_teardown(state);
}

int cuda_up(void **state)
{
	node_up(state);
	assert_cuda(cuInit(0));
	return 0;
}

int context_up(void **state)
{
	CUcontext ctx;

	(void)state;
	assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 0));
	assert_cuda(cuCtxSetCurrent(ctx));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	return 0;
}

int context_down(void **state)
{
	(void)state;
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	assert_cuda(cuCtxSetCurrent(NULL));
	return 0;
}

size_t free_bytes(void)
{
	size_t left = 0, total = 0;

	assert_cuda(cuMemGetInfo_v2(&left, &total));
	assert_int_equal(total, CARD_BYTES - RESERVED_BYTES);
	return left;
}
