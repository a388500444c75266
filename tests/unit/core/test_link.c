#include "core/link.h"

#include <stdlib.h>

#include "core/cleanup.h"
#include "harness/unit.h"

struct item {
	int n;
	struct link link;
};

static struct item *item_of(struct link *l)
{
	return HM_CONTAINER(l, struct item, link);
}

static void keeps_order(void **state)
{
	struct item items[4] = { { .n = 0 }, { .n = 1 }, { .n = 2 }, { .n = 3 } };
	struct link list;
	int want = 0;

	(void)state;
	list_init(&list);
	assert_true(list_empty(&list));
	assert_null(list_first(&list));
	for (size_t i = 0; i < HM_COUNT(items); i++) {
		assert_false(link_on_list(&items[i].link));
		link_append(&list, &items[i].link);
		assert_true(link_on_list(&items[i].link));
	}
	assert_ptr_equal(list_first(&list), &items[0].link);
	LIST_FOR_EACH (&list, it)
		assert_int_equal(item_of(it)->n, want++);
	assert_int_equal(want, 4);
}

static void removing_twice_is_harmless(void **state)
{
	struct item a = { .n = 1 }, b = { .n = 2 };
	struct link list;

	(void)state;
	list_init(&list);
	link_append(&list, &a.link);
	link_append(&list, &b.link);
	link_remove(&a.link);
	link_remove(&a.link);
	assert_false(link_on_list(&a.link));
	assert_ptr_equal(list_first(&list), &b.link);
	link_remove(&b.link);
	assert_true(list_empty(&list));
}

static void the_current_element_may_be_freed(void **state)
{
	struct link list;
	int left = 0;

	(void)state;
	list_init(&list);
	for (int i = 0; i < 10; i++) {
		struct item *it = calloc(1, sizeof *it);

		assert_non_null(it);
		it->n = i;
		link_append(&list, &it->link);
	}
	LIST_FOR_EACH (&list, it) {
		struct item *i = item_of(it);

		if (i->n % 2 == 1)
			continue;
		link_remove(it);
		free(i);
	}
	LIST_FOR_EACH (&list, it) {
		left += item_of(it)->n;
		link_remove(it);
		free(item_of(it));
	}
	assert_int_equal(left, 1 + 3 + 5 + 7 + 9);
	assert_true(list_empty(&list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order),
		cmocka_unit_test(removing_twice_is_harmless),
		cmocka_unit_test(the_current_element_may_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
