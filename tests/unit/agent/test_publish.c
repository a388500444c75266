#include "agent/cluster/publish.h"

#include "fake_kube.h"
#include "harness/fake_wait.h"

static struct world {
	struct node_object *node;
	struct publish *publish;
	const char *registered, *score; /* what the texts are; registered NULL: an error */
	unsigned asked, paused;
} w;

static int texts(void *arg, struct publish_texts *out, struct hm_err *e)
{
	(void)arg;
	w.asked++;
	if (w.registered == NULL)
		return hm_err_set(e, HM_EAGAIN, "no texts, says the test");
	str_add(&out->texts[NODE_REGISTER], w.registered);
	str_add(&out->texts[NODE_SCORE], w.score);
	return 0;
}

static void on_paused(void *arg)
{
	(void)arg;
	w.paused++;
}

static void begin(void)
{
	struct publish_config config = { .texts = texts };
	struct hm_err e;

	fake_forget();
	fast_forget_log();
	w = (struct world) { .registered = "[1]", .score = "" };
	assert_int_equal(node_object_new(NULL, &w.node, &e), 0);
	config.node = w.node;
	assert_int_equal(publish_new(fake_loop, &config, &w.publish, &e), 0);
}

static void end(void)
{
	publish_free(w.publish);
	node_object_free(w.node);
}

static struct publish_stats stats(void)
{
	struct publish_stats s;

	publish_stats(w.publish, &s);
	return s;
}

/* The Node, as the watch tells it: NULL: no such annotation. */
static void node_is(const char *uid, unsigned version, const char *registered, const char *score)
{
	char text[1000], r[200] = "", s[200] = "";

	if (registered != NULL)
		snprintf(r, sizeof r, "'hami.io/node-nvidia-register':'%s',", registered);
	if (score != NULL)
		snprintf(s, sizeof s, "'hami.io/node-nvidia-score':'%s',", score);
	snprintf(text, sizeof text,
		 "{'metadata':{'name':'node-1','uid':'%s','resourceVersion':'%u','annotations':{%s%s'x':'y'}}}", uid,
		 version, r, s);
	fake_watch(text, false);
}

/* The server takes the patch, and the Node has these now. */
static void take_patch(unsigned version, const char *registered)
{
	char text[1000];

	snprintf(text, sizeof text,
		 "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"%u\",\"annotations\":{"
		 "\"hami.io/node-nvidia-register\":\"%s\"}}}",
		 version, registered);
	fake_answer(KUBE_DONE, 200, text);
}

static void written_once_and_left_alone(void **state)
{
	(void)state;
	begin();
	fast_run(fake_loop, 100);
	assert_int_equal(w.asked, 0); /* nobody has cards yet */
	publish_now(w.publish);
	fast_run(fake_loop, 100);
	assert_int_equal(fake_count, 0); /* no Node yet; that is no failure */
	assert_int_equal(stats().failures, 0);
	node_is("u", 7, NULL, NULL);
	wait_requests(1);
	assert_string_equal(
		fake_open()->body,
		"{\"metadata\":{\"uid\":\"u\",\"annotations\":{\"hami.io/node-nvidia-register\":\"[1]\"}}}");
	take_patch(8, "[1]");
	fast_run(fake_loop, 32000); /* another pass */
	assert_int_equal(fake_count, 1);
	assert_true(stats().passes >= 2);
	assert_int_equal(stats().writes, 1);
	assert_true(stats().good && stats().good_age_ms < 31000);
	/* The Node's own business, and somebody else's score. */
	node_is("u", 9, "[1]", "not ours");
	fast_run(fake_loop, 1000);
	assert_int_equal(fake_count, 1);
	end();
}

static void a_change_is_written_at_once_and_alone(void **state)
{
	(void)state;
	begin();
	w.score = "s1";
	node_is("u", 7, "[1]", "s1"); /* as the run before left it */
	publish_now(w.publish);
	fast_run(fake_loop, 200);
	assert_int_equal(fake_count, 0);
	w.score = "s2";
	publish_now(w.publish);
	wait_requests(1);
	assert_string_equal(fake_open()->body,
			    "{\"metadata\":{\"uid\":\"u\",\"annotations\":{\"hami.io/node-nvidia-score\":\"s2\"}}}");
	/* Another change while this one is on its way. */
	w.registered = "[2]";
	publish_now(w.publish);
	fast_run(fake_loop, 200);
	assert_int_equal(fake_count, 1);
	fake_answer(KUBE_DONE, 200,
		    "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"8\",\"annotations\":{"
		    "\"hami.io/node-nvidia-register\":\"[1]\",\"hami.io/node-nvidia-score\":\"s2\"}}}");
	fast_run(fake_loop, 2000); /* at once, not at the next pass */
	assert_int_equal(fake_count, 2);
	assert_string_equal(
		fake_open()->body,
		"{\"metadata\":{\"uid\":\"u\",\"annotations\":{\"hami.io/node-nvidia-register\":\"[2]\"}}}");
	end();
}

static void what_others_do_is_put_right(void **state)
{
	(void)state;
	begin();
	node_is("u", 7, NULL, NULL);
	publish_now(w.publish);
	wait_requests(1);
	take_patch(8, "[1]");
	fast_run(fake_loop, 6000);
	node_is("u", 9, NULL, NULL); /* taken away */
	wait_requests(2);
	take_patch(10, "[1]");
	assert_int_equal(stats().healed, 1);
	fast_run(fake_loop, 500);
	node_is("u", 11, "[]", NULL); /* edited, a moment later: not chased at full speed */
	fast_run(fake_loop, 2000);
	assert_int_equal(fake_count, 2);
	w.registered = "[2]"; /* but what we have to say does not wait for that */
	publish_now(w.publish);
	wait_requests(3);
	take_patch(12, "[2]");
	node_is("u", 13, "[]", NULL);
	wait_requests(4);
	take_patch(14, "[2]");
	node_is("u2", 3, NULL, NULL); /* made again */
	wait_requests(5);
	assert_non_null(strstr(fake_open()->body, "\"uid\":\"u2\""));
	end();
}

static void a_failure_is_tried_again(void **state)
{
	(void)state;
	begin();
	node_is("u", 7, NULL, NULL);
	publish_now(w.publish);
	wait_requests(1);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	publish_now(w.publish);
	fast_run(fake_loop, 3000);
	assert_int_equal(fake_count, 1);
	wait_requests(2);
	fake_answer(KUBE_SERVER_ERROR, 500, "");
	wait_requests(3);
	assert_int_equal(fast_said("cannot publish our cards to the scheduler"), 1);
	take_patch(8, "[1]");
	fast_run(fake_loop, 200);
	assert_int_equal(stats().failures, 2);
	assert_int_equal(stats().writes, 1);
	assert_int_equal(fast_said("as they should be again"), 1);
	/* No texts: the same. */
	w.registered = NULL;
	publish_now(w.publish);
	fast_run(fake_loop, 200);
	assert_int_equal(stats().failures, 3);
	w.registered = "[3]";
	wait_requests(4);
	/* Another Node by now: asked, and written without waiting. */
	fake_answer(KUBE_CONFLICT, 422, "");
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u2\",\"resourceVersion\":\"9\"}}");
	fast_run(fake_loop, 500);
	assert_int_equal(fake_count, 6);
	assert_non_null(strstr(fake_open()->body, "\"uid\":\"u2\""));
	/* A server that says so again and again is not asked again and again. */
	fake_answer(KUBE_CONFLICT, 422, "");
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u2\",\"resourceVersion\":\"10\"}}");
	fast_run(fake_loop, 2000);
	assert_int_equal(fake_count, 7);
	/* The Node is gone. */
	fake_watch("{'metadata':{'name':'node-1','uid':'u2','resourceVersion':'11'}}", true);
	fast_run(fake_loop, 12000);
	assert_int_equal(fake_count, 7);
	assert_true(stats().failures >= 6);
	node_is("u3", 12, NULL, NULL);
	wait_requests(8);
	end();
}

static void paused_nothing_is_written(void **state)
{
	(void)state;
	begin();
	node_is("u", 7, NULL, NULL);
	publish_now(w.publish);
	wait_requests(1);
	publish_pause(w.publish, on_paused, NULL);
	fast_run(fake_loop, 1000);
	assert_int_equal(w.paused, 0); /* a write is under way */
	take_patch(8, "[1]");
	assert_int_equal(w.paused, 0); /* never from inside a call */
	fast_run(fake_loop, 200);
	assert_int_equal(w.paused, 1);
	assert_true(stats().paused);
	w.registered = "[2]";
	publish_now(w.publish);
	node_is("u", 9, NULL, NULL);
	fast_run(fake_loop, 8000);
	assert_int_equal(fake_count, 1);
	assert_int_equal(w.paused, 1);
	publish_resume(w.publish);
	wait_requests(2);
	take_patch(10, "[2]");
	/* Idle: acknowledged at once. Resumed before the word came: no word. */
	publish_pause(w.publish, on_paused, NULL);
	fast_run(fake_loop, 200);
	assert_int_equal(w.paused, 2);
	publish_resume(w.publish);
	publish_pause(w.publish, on_paused, NULL);
	publish_resume(w.publish);
	fast_run(fake_loop, 200);
	assert_int_equal(w.paused, 2);
	publish_pause(w.publish, NULL, NULL);
	fast_run(fake_loop, 200);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_once_and_left_alone), cmocka_unit_test(a_change_is_written_at_once_and_alone),
		cmocka_unit_test(what_others_do_is_put_right), cmocka_unit_test(a_failure_is_tried_again),
		cmocka_unit_test(paused_nothing_is_written),
	};

	log_set_sink(fast_keep_line, NULL);
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
