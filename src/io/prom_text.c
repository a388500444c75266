#include "io/prom_text.h"

#include "io/json_write.h"

static const char *const type_names[] = {
	[PROM_COUNTER] = "counter",
	[PROM_GAUGE] = "gauge",
	[PROM_HISTOGRAM] = "histogram",
};

const char *prom_type_name(enum prom_type t)
{
	return type_names[t];
}

void prom_add_head(struct str *out, const struct prom_family *f)
{
	str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, type_names[f->type]);
}

/* The format takes any UTF-8; a reader refuses the whole page for one byte that is none. */
static void add_value(struct str *out, const char *text)
{
	bool plain = json_can_say(text);

	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '\n')
			str_add(out, "\\n");
		else if (*p == '"' || *p == '\\')
			str_addf(out, "\\%c", *p);
		else
			str_addc(out, !plain && (unsigned char)*p >= 0x80 ? '?' : *p);
	}
}

/* name_suffix{labels,le="bound"} and the blank before the value; `bound` may be NULL. */
static void add_series(struct str *out, const char *name, const char *suffix, const struct prom_label *labels,
		       const char *bound)
{
	char between = '{';

	str_addf(out, "%s%s", name, suffix);
	for (const struct prom_label *l = labels; l != NULL && l->name != NULL; l++) {
		str_addf(out, "%c%s=\"", between, l->name);
		add_value(out, l->value);
		str_addc(out, '"');
		between = ',';
	}
	if (bound != NULL)
		str_addf(out, "%cle=\"%s\"", between, bound);
	str_add(out, between == ',' || bound != NULL ? "} " : " ");
}

static void add_micros(struct str *out, uint64_t micros)
{
	unsigned rest = (unsigned)(micros % 1000000), digits = 6;

	str_addf(out, "%llu", (unsigned long long)(micros / 1000000));
	if (rest == 0)
		return;
	while (rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	str_addf(out, ".%0*u", (int)digits, rest);
}

void prom_add(struct str *out, const struct prom_family *f, const struct prom_label *labels, uint64_t value)
{
	add_series(out, f->name, "", labels, NULL);
	str_addf(out, "%llu\n", (unsigned long long)value);
}

void prom_add_micros(struct str *out, const struct prom_family *f, const struct prom_label *labels, uint64_t micros)
{
	add_series(out, f->name, "", labels, NULL);
	add_micros(out, micros);
	str_addc(out, '\n');
}

static void add_bucket(struct str *out, const struct prom_family *f, const struct prom_label *labels, const char *bound,
		       uint64_t value)
{
	add_series(out, f->name, "_bucket", labels, bound);
	str_addf(out, "%llu\n", (unsigned long long)value);
}

void prom_add_histogram(struct str *out, const struct prom_family *f, const struct prom_label *labels,
			const struct prom_buckets *b)
{
	uint64_t total = 0;

	for (size_t i = 0; i < b->count; i++) {
		hm_auto_str bound = { 0 };

		add_micros(&bound, b->bounds_us[i]);
		total += b->buckets[i];
		add_bucket(out, f, labels, str_text(&bound), total);
	}
	total += b->buckets[b->count];
	add_bucket(out, f, labels, "+Inf", total);
	add_series(out, f->name, "_sum", labels, NULL);
	add_micros(out, b->sum_us);
	str_addc(out, '\n');
	add_series(out, f->name, "_count", labels, NULL);
	str_addf(out, "%llu\n", (unsigned long long)total);
}
