#include "agent/processes/sight.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/macros.h"
#include "harness/temp.h"
#include "harness/unit.h"

/* A /proc with ourselves and `pid`, whose pid namespace is ours or not: a file's inode stands for it. */
static void make_proc(bool same)
{
	static const char *const folders[] = { "proc", "proc/self", "proc/self/ns", "proc/7", "proc/7/ns" };

	for (size_t i = 0; i < HM_COUNT(folders); i++)
		assert_int_equal(mkdir(temp_path(folders[i]), 0755), 0);
	temp_write("proc/self/ns/pid", "");
	if (same)
		assert_int_equal(link(temp_path("proc/self/ns/pid"), temp_path("proc/7/ns/pid")), 0);
	else
		temp_write("proc/7/ns/pid", "");
}

static void a_process_of_another_namespace_tells(void **state)
{
	(void)state;
	make_proc(false);
	assert_true(sight_of_node(temp_path("proc"), temp_path("kubelet.sock")));
}

static void ourselves_alone_tell_nothing(void **state)
{
	(void)state;
	make_proc(true);
	assert_false(sight_of_node(temp_path("proc"), temp_path("kubelet.sock")));
	assert_false(sight_of_node(temp_path("none"), temp_path("kubelet.sock")));
}

static void a_kubelet_that_we_see_tells(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	make_proc(true);
	snprintf(at.sun_path, sizeof at.sun_path, "%s", temp_path("kubelet.sock"));
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
	assert_false(sight_of_node(temp_path("proc"), temp_path("kubelet.sock"))); /* a stale socket */
	assert_int_equal(listen(fd, 1), 0);
	assert_true(sight_of_node(temp_path("proc"), temp_path("kubelet.sock")));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_process_of_another_namespace_tells, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(ourselves_alone_tell_nothing, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(a_kubelet_that_we_see_tells, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
