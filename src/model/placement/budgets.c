#include "model/placement/budgets.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct budgets {
	struct map *spaces; /* struct space by the namespace's name */
	uint64_t versions, round, work;
};

/* A namespace, while it has budgets. */
struct space {
	struct map *budgets;
	uint64_t version; /* another one when who is under which budget may have changed */
};

struct budget {
	int64_t allowed, left;
	uint64_t round;  /* of what is left */
	char *disrupted; /* owned; NULL: nobody */
	size_t n, words;
	char selector[]; /* a demand is its op and key, a value "=" and itself, each with its NUL; a NUL more at the end
			  */
};

struct budgets *budgets_new(void)
{
	hm_auto(budgets) *b = calloc(1, sizeof *b);

	if (b == NULL)
		return NULL;
	b->spaces = map_new();
	return b->spaces != NULL ? HM_STEAL(b) : NULL;
}

static void budget_free(struct budget *it)
{
	if (it == NULL)
		return;
	free(it->disrupted);
	free(it);
}

static void space_free(struct space *s)
{
	void *it;

	for (size_t at = 0; s->budgets != NULL && map_next(s->budgets, &at, NULL, &it);)
		budget_free(it);
	map_free(s->budgets);
	free(s);
}

void budgets_free(struct budgets *b)
{
	void *s;

	if (b == NULL)
		return;
	for (size_t at = 0; b->spaces != NULL && map_next(b->spaces, &at, NULL, &s);)
		space_free(s);
	map_free(b->spaces);
	free(b);
}

/* ---- budgets */

void budget_add_demand(struct str *selector, enum budget_op op, const char *key)
{
	str_addc(selector, (char)op);
	str_add_n(selector, key, strlen(key) + 1);
}

void budget_add_value(struct str *selector, const char *value)
{
	str_addc(selector, '=');
	str_add_n(selector, value, strlen(value) + 1);
}

static struct space *open_space(struct budgets *b, const char *name)
{
	struct space *s = map_get(b->spaces, name);

	if (s != NULL)
		return s;
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	s->budgets = map_new();
	if (s->budgets == NULL || map_put(b->spaces, name, s, NULL) < 0) {
		space_free(s);
		return NULL;
	}
	return s;
}

static void drop_if_empty(struct budgets *b, const char *name, struct space *s)
{
	if (map_count(s->budgets) > 0)
		return;
	map_remove(b->spaces, name);
	space_free(s);
}

static struct budget *budget_new(const struct str *selector)
{
	struct budget *it = calloc(1, sizeof *it + selector->n + 1);

	if (it == NULL)
		return NULL;
	it->n = selector->n;
	memcpy(it->selector, selector->p, selector->n);
	for (size_t i = 0; i < it->n; i++)
		it->words += it->selector[i] == '\0';
	return it;
}

static int put_budget(struct budgets *b, struct space *s, const char *name, const struct budget_terms *terms)
{
	struct budget *it = map_get(s->budgets, name);
	char *disrupted = terms->disrupted[0] != '\0' ? strdup(terms->disrupted) : NULL;
	bool same = it != NULL && it->n == terms->selector->n && memcmp(it->selector, terms->selector->p, it->n) == 0;
	void *old = NULL;

	if (!same)
		it = budget_new(terms->selector);
	if (it == NULL || (disrupted == NULL && terms->disrupted[0] != '\0') ||
	    (!same && map_put(s->budgets, name, it, &old) < 0)) {
		free(disrupted);
		if (!same)
			budget_free(it);
		return -HM_ENOMEM;
	}
	free(it->disrupted);
	it->disrupted = disrupted;
	it->allowed = terms->allowed;
	budget_free(old);
	if (!same)
		s->version = ++b->versions;
	return 0;
}

int budgets_set(struct budgets *b, const char *name_space, const char *name, const struct budget_terms *terms,
		struct hm_err *e)
{
	struct space *s = open_space(b, name_space);

	if (s != NULL && put_budget(b, s, name, terms) == 0)
		return 0;
	if (s != NULL)
		drop_if_empty(b, name_space, s);
	return hm_err_set(e, HM_ENOMEM, "disruption budget %s/%s: out of memory", name_space, name);
}

void budgets_remove(struct budgets *b, const char *name_space, const char *name)
{
	struct space *s = map_get(b->spaces, name_space);
	struct budget *gone = s != NULL ? map_remove(s->budgets, name) : NULL;

	if (gone == NULL)
		return;
	budget_free(gone);
	s->version = ++b->versions;
	drop_if_empty(b, name_space, s);
}

/* ---- labels */

/* The API server lets neither of the two into a key or a value. */
void pod_labels_add(struct str *text, const char *key, const char *value)
{
	if (strpbrk(key, "=\n") == NULL && strchr(value, '\n') == NULL)
		str_addf(text, "%s=%s\n", key, value);
}

int pod_labels_new(const char *text, struct pod_labels **out)
{
	size_t n = text != NULL ? strlen(text) + 1 : 0;

	*out = NULL;
	if (n <= 1)
		return 0;
	*out = calloc(1, sizeof **out + n);
	if (*out == NULL)
		return -HM_ENOMEM;
	memcpy((*out)->text, text, n);
	return 0;
}

/* The value that a label of this text has, up to its newline; NULL: there is none. */
static const char *find_label(const char *labels, const char *key, uint64_t *work)
{
	size_t n = strlen(key);

	for (int i = 0; i < POD_LABELS_MAX && *labels != '\0'; i++) {
		++*work;
		if (strncmp(labels, key, n) == 0 && labels[n] == '=')
			return labels + n + 1;
		labels = strchr(labels, '\n') + 1;
	}
	return NULL;
}

static bool is_value(const char *label, const char *value)
{
	size_t n = strlen(value);

	return strncmp(label, value, n) == 0 && label[n] == '\n';
}

/* *at goes behind the demand. */
static bool meets(const char **at, const char *labels, uint64_t *work)
{
	const char op = **at, *key = *at + 1, *label = find_label(labels, key, work);
	bool among = false;

	for (*at = key + strlen(key) + 1; **at == '='; *at += strlen(*at) + 1) {
		++*work;
		among |= label != NULL && is_value(label, *at + 1);
	}
	switch (op) {
	case BUDGET_IN: return among;
	case BUDGET_NOT_IN: return !among;
	case BUDGET_EXISTS: return label != NULL;
	default: return label == NULL;
	}
}

static bool is_over(const struct budget *it, const char *labels, uint64_t *work)
{
	for (const char *at = it->selector; *at != '\0';)
		if (!meets(&at, labels, work))
			return false;
	return true;
}

static void look(struct budgets *b, const struct space *s, struct pod_labels *l)
{
	size_t words = 0;
	void *value;

	l->version = s->version;
	l->count = 0;
	for (size_t at = 0; l->count < BUDGETS_OF_A_POD && map_next(s->budgets, &at, NULL, &value);) {
		struct budget *it = value;

		words += it->words;
		if (words > BUDGETS_MAX_WORDS)
			return;
		if (is_over(it, l->text, &b->work))
			l->over[l->count++] = it;
	}
}

/* ---- evictions */

static bool is_named(const char *names, const char *pod, uint64_t *work)
{
	size_t n = strlen(pod);

	for (; names != NULL && *names != '\0'; names = strchr(names, '\n') + 1) {
		++*work;
		if (strncmp(names, pod, n) == 0 && names[n] == '\n')
			return true;
	}
	return false;
}

void budgets_begin(struct budgets *b)
{
	b->round++;
}

bool budgets_take(struct budgets *b, const char *name_space, const char *pod, struct pod_labels *labels)
{
	const struct space *s = labels != NULL ? map_get(b->spaces, name_space) : NULL;
	bool violates = false;

	if (s == NULL)
		return false;
	if (labels->version != s->version)
		look(b, s, labels);
	for (uint32_t i = 0; i < labels->count; i++) {
		struct budget *it = labels->over[i];

		if (is_named(it->disrupted, pod, &b->work))
			continue;
		if (it->round != b->round)
			it->left = it->allowed;
		it->round = b->round;
		violates |= --it->left < 0;
	}
	return violates;
}

uint64_t budgets_work(const struct budgets *b)
{
	return b->work;
}
