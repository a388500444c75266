#include "agent/claims/claims.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"

static struct claims *open_claims(void)
{
	struct claims *s = NULL;
	struct hm_err e;

	if (claims_open(temp_path("claims"), &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void a_claim_survives_the_process(void **state)
{
	struct claims *s = open_claims();
	const struct claim *c;

	(void)state;
	put_claim(s, make_claim(7, "uid", "hami.io/vgpu=v.7", "GPU-0::1", "GPU-0::2"));
	claims_free(s);
	s = open_claims();
	assert_int_equal(claims_count(s), 1);
	c = claims_find(s, 7);
	assert_non_null(c);
	assert_string_equal(c->pod_uid, "uid");
	assert_true(claim_has_set(c, (const char *[]) { "GPU-0::2", "GPU-0::1" }, 2));
	assert_false(claim_has_set(c, (const char *[]) { "GPU-0::2" }, 1));
	assert_int_equal(claims_max_number(s), 7);
	assert_null(claims_find(s, 8));
	claims_free(s);
}

static void the_same_content_is_not_written_again(void **state)
{
	struct claims *s = open_claims();
	struct stat before, after;

	(void)state;
	put_claim(s, make_claim(7, "uid", "hami.io/vgpu=v.7", "GPU-0::1", NULL));
	assert_int_equal(stat(temp_path("claims/7"), &before), 0);
	put_claim(s, make_claim(7, "uid", "hami.io/vgpu=v.7", "GPU-0::1", NULL));
	assert_int_equal(stat(temp_path("claims/7"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	put_claim(s, make_claim(7, "other", "hami.io/vgpu=v.7", "GPU-0::1", NULL));
	assert_int_equal(stat(temp_path("claims/7"), &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(claims_count(s), 1);
	assert_string_equal(claims_find(s, 7)->pod_uid, "other");
	claims_free(s);
}

/* In front of libc's. */
static int fsyncs;

int fsync(int fd)
{
	(void)fd;
	fsyncs++;
	return 0;
}

/* File and folder; a restart changes nothing and so waits for no disk. */
static void a_claim_outlives_a_power_cut(void **state)
{
	struct claims *s = open_claims();

	(void)state;
	fsyncs = 0;
	put_claim(s, make_claim(7, "a", "", "GPU-0::1", NULL));
	assert_int_equal(fsyncs, 2);
	put_claim(s, make_claim(7, "a", "", "GPU-0::1", NULL));
	assert_int_equal(fsyncs, 2);
	claims_free(s);
}

static void remove_forgets_claim_and_file(void **state)
{
	struct claims *s = open_claims();
	struct hm_err e;

	(void)state;
	put_claim(s, make_claim(7, "a", "", "GPU-0::1", NULL));
	put_claim(s, make_claim(8, "b", "", "GPU-0::2", NULL));
	assert_int_equal(claims_remove(s, 7, &e), 0);
	assert_int_equal(claims_remove(s, 7, &e), 0);
	assert_int_equal(claims_count(s), 1);
	assert_int_equal(claims_at(s, 0)->number, 8);
	assert_int_equal(temp_count("claims"), 1);
	claims_free(s);
}

static void torn_and_foreign_files_are_no_claims_but_their_numbers_count(void **state)
{
	struct claims *s = open_claims();

	(void)state;
	put_claim(s, make_claim(7, "a", "", "GPU-0::1", NULL));
	claims_free(s);
	temp_write("claims/9", "hami-vgpu-claim 1\n"
			       "number=9\n"
			       "sta");
	temp_write("claims/10", "");
	temp_write("claims/11", "hami-vgpu-claim 99\nend\n");
	temp_write("claims/12.tmp-1", "");
	temp_write("claims/note", "x");
	/* A copy under another number must not become a second holder. */
	assert_int_equal(rename(temp_path("claims/7"), temp_path("claims/13")), 0);
	s = open_claims();
	assert_int_equal(claims_count(s), 0);
	assert_int_equal(claims_max_number(s), 13);
	claims_free(s);
}

static void a_failed_write_changes_nothing(void **state)
{
	struct claims *s = open_claims();
	struct claim c = make_claim(7, "new", "", "GPU-0::1", NULL);
	struct hm_err e;

	(void)state;
	put_claim(s, make_claim(7, "old", "", "GPU-0::1", NULL));
	assert_int_equal(rename(temp_path("claims"), temp_path("moved")), 0);
	assert_true(claims_put(s, &c, &e) < 0);
	assert_non_null(strstr(e.msg, "claims/7"));
	assert_string_equal(claims_find(s, 7)->pod_uid, "old");
	assert_string_equal(c.pod_uid, "new"); /* still the caller's */
	claim_fini(&c);
	claims_free(s);
}

static int scenario(void *arg)
{
	struct claim c = { .number = 3 }, copy = { 0 };
	hm_auto(claims) *s = NULL;
	struct hm_err e;
	int r;

	(void)arg;
	c.devices = calloc(1, sizeof *c.devices);
	if (c.devices == NULL)
		return -1;
	snprintf(c.devices[0], sizeof *c.devices, "GPU-0::1");
	c.device_count = 1;
	r = claims_open(temp_path("claims"), &s, &e);
	if (r == 0)
		r = claim_copy(&c, &copy, &e);
	if (r == 0)
		r = claims_put(s, &copy, &e);
	if (r < 0)
		assert_true(s == NULL || claims_count(s) <= 1);
	claim_fini(&copy);
	claim_fini(&c);
	return r;
}

static void allocation_failures(void **state)
{
	struct sweep_result r = sweep_run(scenario, NULL);

	(void)state;
	assert_false(r.failed);
	assert_int_equal(r.leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
		TEST(a_claim_survives_the_process),
		TEST(the_same_content_is_not_written_again),
		TEST(a_claim_outlives_a_power_cut),
		TEST(remove_forgets_claim_and_file),
		TEST(torn_and_foreign_files_are_no_claims_but_their_numbers_count),
		TEST(a_failed_write_changes_nothing),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
