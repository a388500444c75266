#include "gpu/mig.h"

#include <string.h>

#include "abi/nvml_mig.h"
#include "gpu/scan.h"
#include "harness/unit.h"
#include "unit/gpu/fake_setup.h"

static const char uuid[] = "GPU-00000000-0000-0000-0000-000000000001";

static struct gpu_driver *open_fake(const char *path)
{
	struct gpu_driver *d = NULL;
	struct hm_err e;

	if (gpu_driver_open(path, &d, &e) < 0 || gpu_driver_set_sysfs(d, "/nowhere", &e) < 0)
		fail_msg("%s", e.msg);
	return d;
}

/* Card 1 can MIG: 1, 2 and 3 slices, and 1 with other engines. */
static struct fake *with_mig(bool on)
{
	struct fake *fake = fake_load(FAKE_NVML);
	static const struct fake_profile profiles[] = {
		{ 19, 1, 7, 1, 7, 5756, "1g.6gb" },
		{ 14, 2, 3, 2, 3, 11512, "2g.12gb" },
		{ 9, 3, 2, 4, 2, 23024, "3g.23gb" },
	};

	fake_node(fake, 2);
	memcpy(fake->cards[1].profiles, profiles, sizeof profiles);
	fake->cards[1].profiles[7] = (struct fake_profile) { 20, 1, 1, 1, 7, 5756, "1g.6gb+me" };
	fake->cards[1].mig = fake->cards[1].mig_pending = on;
	return fake;
}

static struct mig_card now(struct gpu_driver *d)
{
	struct mig_card m;
	struct hm_err e;

	if (gpu_mig_read(d, uuid, &m, &e) < 0)
		fail_msg("%s", e.msg);
	return m;
}

static struct mig_device ensured(struct gpu_driver *d, const char *profile, unsigned start, unsigned size)
{
	struct mig_device device;
	struct hm_err e;

	if (gpu_mig_ensure(d, uuid, profile, (struct mig_placement) { start, size }, &device, &e) < 0)
		fail_msg("%s", e.msg);
	return device;
}

static void ensure_fails(struct gpu_driver *d, const char *profile, unsigned start, unsigned size, int code,
			 const char *text)
{
	struct mig_device device;
	struct hm_err e;
	int r = gpu_mig_ensure(d, uuid, profile, (struct mig_placement) { start, size }, &device, &e);

	if (r != -code || strstr(e.msg, text) == NULL)
		fail_msg("%d: %s", r, r < 0 ? e.msg : "made");
}

static void a_card_is_read(void **state)
{
	struct fake *fake = with_mig(true);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *inv = NULL;
	const struct mig_card *m;
	struct hm_err e;

	(void)state;
	ensured(d, "1g.6gb+me", 3, 1);
	ensured(d, "3g.23gb", 4, 4);
	assert_int_equal(gpu_scan(d, &inv, &e), 0);
	assert_false(inv->cards[0].mig_enabled);
	assert_int_equal(inv->cards[0].mig.profile_count, 0);
	m = &inv->cards[1].mig;
	assert_true(m->capable && m->enabled && m->pending);
	assert_int_equal(m->profile_count, 4);
	assert_string_equal(m->profiles[1].name, "2g.12gb");
	assert_int_equal(m->profiles[1].id, 14);
	assert_int_equal(m->profiles[1].memory_mib, 11512);
	assert_int_equal(m->profiles[1].size, 2);
	assert_int_equal(m->profiles[1].start_count, 3);
	assert_int_equal(m->profiles[1].starts[2], 4);
	assert_int_equal(m->device_count, 2);
	assert_string_equal(m->devices[0].uuid, "MIG-3");
	assert_string_equal(m->devices[0].profile, "1g.6gb+me"); /* not the plain one, of the same size */
	assert_int_equal(m->devices[1].at.start, 4);
	assert_int_equal(m->devices[1].memory_mib, 23024);
	assert_true(m->devices[1].whole);

	/* Not root: no GPU instance is shown, so its place is not known, and its profile is by its size. */
	fake_fault(fake, "nvmlDeviceGetGpuInstanceById", 1, NVML_ERROR_NO_PERMISSION);
	assert_string_equal(now(d).devices[1].profile, "3g.23gb");
	assert_int_equal(now(d).devices[1].at.size, 0);
	/* An older driver: no names. */
	fake_fault(fake, "nvmlDeviceGetGpuInstanceProfileInfoV", 1, NVML_ERROR_FUNCTION_NOT_FOUND);
	assert_string_equal(now(d).profiles[3].name, "1g.6gb+me");
	/* A device that fails to answer is left out, the other one stays. */
	fake_fault(fake, "nvmlDeviceGetGpuInstanceProfileInfo", 1, NVML_ERROR_UNKNOWN);
	assert_int_equal(now(d).profile_count, 0);
	assert_int_equal(now(d).device_count, 2);
}

static void an_older_library_has_no_mig(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML_OLD);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML_OLD);
	struct mig_card m;
	struct hm_err e;

	(void)state;
	fake_node(fake, 2);
	assert_int_equal(gpu_mig_read(d, uuid, &m, &e), 0);
	assert_false(m.capable);
	assert_int_equal(gpu_mig_enable(d, uuid, &e), -HM_EUNSUPPORTED);
	assert_int_equal(gpu_mig_clear(d, uuid, &e), 0);
	assert_int_equal(gpu_mig_read(d, "GPU-none", &m, &e), -HM_ENOTFOUND);
}

static void the_mode_is_set_or_waits(void **state)
{
	struct fake *fake = with_mig(false);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	struct hm_err e;

	(void)state;
	ensure_fails(d, "1g.6gb", 0, 1, HM_EAGAIN, "not on");
	assert_int_equal(gpu_mig_enable(d, uuid, &e), 0);
	assert_int_equal(fake->cards[1].mig, 1);
	assert_int_equal(gpu_mig_enable(d, uuid, &e), 0);
	fake->cards[1].mig = fake->cards[1].mig_pending = 0;
	fake->cards[1].activation = NVML_ERROR_IN_USE;
	assert_int_equal(gpu_mig_enable(d, uuid, &e), -HM_EAGAIN);
	assert_int_equal(gpu_mig_enable(d, uuid, &e), -HM_EAGAIN);
	assert_non_null(strstr(e.msg, "reset"));
	assert_int_equal(gpu_mig_enable(d, "GPU-00000000-0000-0000-0000-000000000000", &e),
			 0); /* its mode can be set */
}

static void what_stands_there_is_taken_and_nothing_else(void **state)
{
	struct fake *fake = with_mig(true);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	struct mig_device first, again;

	(void)state;
	first = ensured(d, "2g.12gb", 2, 2);
	again = ensured(d, "2g.12gb", 2, 2);
	assert_string_equal(first.uuid, again.uuid);
	assert_int_equal(now(d).device_count, 1);
	/* Half made, as by an agent that was killed. */
	fake->cards[1].migs[0].ci = false;
	assert_int_equal(now(d).device_count, 0);
	assert_int_equal(now(d).bare_count, 1);
	assert_int_equal(now(d).bare[0].gi, first.gi);
	assert_int_equal(now(d).bare[0].at.start, 2);
	assert_string_equal(now(d).bare[0].profile, "2g.12gb");
	assert_string_equal(ensured(d, "2g.12gb", 2, 2).uuid, first.uuid);
	assert_int_equal(fake->cards[1].migs[0].slices, 2);
	/* Somebody cut it. */
	fake->cards[1].migs[0].slices = 1;
	ensure_fails(d, "2g.12gb", 2, 2, HM_ELIMIT, "cut further");
	ensure_fails(d, "3g.23gb", 0, 4, HM_ELIMIT, "the place 0:4 of a 3g.23gb is taken");
	ensure_fails(d, "2g.12gb", 1, 2, HM_EINVAL,
		     "scheduler selected invalid placement {Start:1 Size:2} for profile 2g.12gb");
	ensure_fails(d, "9g.90gb", 0, 2, HM_EINVAL, "unsupported MIG profile \"9g.90gb\"");
}

static void what_fails_half_way_is_undone(void **state)
{
	static const char *const calls[] = { "nvmlDeviceCreateGpuInstanceWithPlacement",
					     "nvmlGpuInstanceGetInfo",
					     "nvmlGpuInstanceCreateComputeInstance",
					     "nvmlDeviceGetMigDeviceHandleByIndex",
					     "nvmlDeviceGetAttributes_v2",
					     "nvmlDeviceGetGpuInstances" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(calls); i++) {
		struct fake *fake = with_mig(true);
		hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);

		fake_fault(fake, calls[i], 1, NVML_ERROR_UNKNOWN);
		ensure_fails(d, "1g.6gb", 0, 1, HM_EIO, "GPU");
		memset(fake->faults, 0, sizeof fake->faults);
		for (unsigned k = 0; k < FAKE_MIGS; k++)
			assert_false(fake->cards[1].migs[k].gi);
	}
}

static int destroy(struct gpu_driver *d, unsigned gi, unsigned start, unsigned size)
{
	struct hm_err e;

	return gpu_mig_destroy(d, uuid, gi, (struct mig_placement) { start, size }, &e);
}

static void only_the_very_instance_is_ended(void **state)
{
	struct fake *fake = with_mig(true);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	struct mig_device one = ensured(d, "1g.6gb", 0, 1), two = ensured(d, "2g.12gb", 2, 2);
	struct hm_err e;

	(void)state;
	assert_int_equal(destroy(d, one.gi, 1, 1), -HM_ENOTFOUND); /* the number is another's by now */
	assert_int_equal(destroy(d, 77, 0, 1), -HM_ENOTFOUND);
	assert_int_equal(now(d).device_count, 2);
	fake->cards[1].migs[0].busy = true;
	assert_int_equal(destroy(d, one.gi, 0, 1), -HM_EAGAIN);
	assert_int_equal(now(d).device_count, 2);
	assert_int_equal(destroy(d, two.gi, 2, 2), 0);
	assert_int_equal(now(d).device_count, 1);
	assert_int_equal(gpu_mig_clear(d, uuid, &e), -HM_EAGAIN);
	fake->cards[1].migs[0].busy = false;
	ensured(d, "1g.6gb+me", 5, 1);
	fake->cards[1].migs[1].ci = false; /* no device shows it */
	assert_int_equal(gpu_mig_clear(d, uuid, &e), 0);
	for (unsigned k = 0; k < FAKE_MIGS; k++)
		assert_false(fake->cards[1].migs[k].gi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_card_is_read),
		cmocka_unit_test(an_older_library_has_no_mig),
		cmocka_unit_test(the_mode_is_set_or_waits),
		cmocka_unit_test(what_stands_there_is_taken_and_nothing_else),
		cmocka_unit_test(what_fails_half_way_is_undone),
		cmocka_unit_test(only_the_very_instance_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
