#include "agent/cards/card_pause.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "harness/temp.h"
#include "harness/unit.h"

static unsigned pauses, resumes;
static void (*asked_ready)(void *arg);

void __wrap_publish_pause(struct publish *p, void (*paused)(void *arg), void *arg);
void __wrap_publish_pause(struct publish *p, void (*paused)(void *arg), void *arg)
{
	(void)p, (void)arg;
	pauses++;
	asked_ready = paused;
}

void __wrap_publish_resume(struct publish *p);
void __wrap_publish_resume(struct publish *p)
{
	(void)p;
	resumes++;
}

static char warned[400];

static void keep_line(const char *line, size_t n, void *arg)
{
	(void)arg;
	snprintf(warned, sizeof warned, "%.*s", (int)n, line);
}

static void ready(void *arg)
{
	(void)arg;
}

static struct card_pause *begin(const char *folder)
{
	struct card_pause *p = NULL;
	struct hm_err e;

	warned[0] = '\0';
	pauses = resumes = 0;
	asked_ready = NULL;
	assert_int_equal(card_pause_new(NULL, folder, &p, &e), 0);
	return p;
}

static void the_lock_stands_while_paused(void **state)
{
	(void)state;
	struct card_pause *p = begin(temp_path("hami"));

	assert_true(temp_exists("hami")); /* HAMi's monitor watches it */
	assert_int_equal(temp_count("hami"), 0);
	card_pause_begin(p, ready, NULL);
	assert_int_equal(pauses, 1);
	assert_ptr_equal(asked_ready, ready);
	assert_true(temp_exists("hami/hami-mig-apply.lock"));
	card_pause_end(p);
	assert_int_equal(resumes, 1);
	assert_int_equal(temp_count("hami"), 0);
	card_pause_begin(p, ready, NULL);
	card_pause_free(p); /* in the middle: nobody is to wait for ever */
	assert_int_equal(temp_count("hami"), 0);
	assert_string_equal(warned, "");
}

static void one_that_was_left_behind_goes(void **state)
{
	(void)state;
	temp_write("hami-mig-apply.lock", "");
	card_pause_free(begin(temp_path("")));
	assert_false(temp_exists("hami-mig-apply.lock"));
}

/* What somebody put in the folder's place is not followed; the work goes on without the file. */
static void a_folder_of_others_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(mkdir(temp_path("target"), 0755), 0);
	assert_int_equal(symlink(temp_path("target"), temp_path("trap")), 0);
	struct card_pause *p = begin(temp_path("trap"));

	assert_non_null(strstr(warned, "HAMi's monitor is not told"));
	card_pause_begin(p, ready, NULL);
	assert_int_equal(pauses, 1);
	assert_int_equal(temp_count("target"), 0);
	card_pause_end(p);
	assert_int_equal(resumes, 1);
	card_pause_free(p);
}

static int set_up(void **state)
{
	(void)state;
	log_set_sink(keep_line, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_lock_stands_while_paused, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(one_that_was_left_behind_goes, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(a_folder_of_others_is_left_alone, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
