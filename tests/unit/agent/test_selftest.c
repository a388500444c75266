#include "agent/reload/selftest.h"

#include <string.h>

#include "harness/unit.h"

/* Lines as in a container of containerd: its own root is an overlay, host folders are mounted in. */
#define ROOT_OVERLAY "585 571 0:84 / / rw,relatime master:230 - overlay overlay rw,lowerdir=/x\n"
#define ROOT_DISK "28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
#define RUN_TMPFS "30 28 0:26 / /run rw,nosuid shared:13 - tmpfs tmpfs rw\n"
#define KUBELET "590 585 254:1 /var/lib/kubelet/device-plugins /var/lib/kubelet/device-plugins rw - ext4 /dev/vda1 rw\n"
#define CDI "591 585 0:26 /cdi /run/cdi rw,nosuid - tmpfs tmpfs rw\n"
#define STATE "592 585 254:1 /var/lib/hami-vgpu /var/lib/hami-vgpu rw - ext4 /dev/vda1 rw\n"
#define KUBELET_DISK "40 28 254:2 / /var/lib/kubelet rw - ext4 /dev/vdb rw\n"

static const struct {
	const char *what, *mounts;
	bool in_pod, late;
	const char *refused; /* part of the message, NULL: accepted */
} rows[] = {
	{ "host", ROOT_DISK RUN_TMPFS, false, true, NULL },
	{ "host, the kubelet on a disk of its own", ROOT_DISK KUBELET_DISK, false, true, NULL },
	{ "one container for runtime and agent", ROOT_OVERLAY, false, true, NULL },
	{ "a pod without any mount", ROOT_OVERLAY, true, true, "/run/cdi" },
	{ "DaemonSet", ROOT_OVERLAY KUBELET CDI STATE, true, true, NULL },
	{ "no CDI folder", ROOT_OVERLAY KUBELET STATE, true, true,
	  "/run/cdi is this container's own: mount it from the host (hostPath /run/cdi at /run/cdi), or use "
	  "--binding=classic" },
	{ "no CDI folder, classic", ROOT_OVERLAY KUBELET STATE, true, false, NULL },
	{ "no CDI folder, not told that it is a pod", ROOT_OVERLAY KUBELET STATE, false, true, "/run/cdi" },
	{ "no CDI folder, root on a snapshotter's disk", ROOT_DISK KUBELET STATE, true, true, "/run/cdi" },
	{ "no state folder", ROOT_OVERLAY KUBELET CDI, true, true, "hostPath /var/lib/hami-vgpu" },
	{ "no state folder, classic", ROOT_OVERLAY KUBELET, true, false, "hostPath /var/lib/hami-vgpu" },
	{ "a name that only begins alike", ROOT_OVERLAY KUBELET STATE "9 8 0:2 / /run/cdi-other rw - tmpfs t rw\n",
	  true, true, "/run/cdi" },
	{ "the whole /run", ROOT_OVERLAY KUBELET STATE RUN_TMPFS, true, true, NULL },
	{ "text that is no mountinfo", "nonsense\n\n1 2 3\n", true, true, NULL },
};

static void refused_only_where_the_runtime_cannot_see_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct selftest_facts f = { rows[i].mounts,
						  strlen(rows[i].mounts),
						  rows[i].in_pod,
						  "/run/cdi",
						  "/var/lib/kubelet/device-plugins",
						  "/var/lib/hami-vgpu" };
		struct hm_err e = { 0 };
		int r = selftest_check(&f, rows[i].late, &e);

		if ((r < 0) != (rows[i].refused != NULL) || (r < 0 && strstr(e.msg, rows[i].refused) == NULL))
			fail_msg("%s: %d %s", rows[i].what, r, e.msg);
	}
}

static void what_is_not_mounted_is_done_without(void **state)
{
	static const struct {
		const char *mounts;
		bool in_pod, classic, below;
	} cases[] = {
		{ ROOT_DISK RUN_TMPFS, false, false, false },
		{ ROOT_OVERLAY, false, false, false },
		{ ROOT_OVERLAY, true, true, false }, /* nothing to keep it in: refused later */
		{ ROOT_OVERLAY KUBELET CDI STATE, true, false, false },
		{ ROOT_OVERLAY KUBELET STATE, true, true, false },
		{ ROOT_OVERLAY KUBELET CDI, true, false, true },
		{ ROOT_OVERLAY KUBELET, true, true, true },
		{ ROOT_OVERLAY KUBELET, false, true, true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const struct selftest_facts f = {
			cases[i].mounts, strlen(cases[i].mounts),           cases[i].in_pod,
			"/run/cdi",      "/var/lib/kubelet/device-plugins", "/var/lib/hami-vgpu"
		};
		struct selftest_choice c = selftest_choose(&f);

		if (c.classic != cases[i].classic || c.state_below_plugins != cases[i].below)
			fail_msg("case %zu: %d %d", i, c.classic, c.state_below_plugins);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(refused_only_where_the_runtime_cannot_see_it),
					    cmocka_unit_test(what_is_not_mounted_is_done_without) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
