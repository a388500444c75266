#include "sched/simulate/run_table.h"

#include "sched/simulate/command.h"

static int64_t at_full(const struct run_result *r)
{
	return r->curve_count > 100 ? r->curve[100] : r->allocated_milli;
}

void run_table_head(struct str *out)
{
	str_add(out, "seed    pods  placed  no CPU or memory  no cards   asked  allocated  at 100  empty cards  lost "
		     "of free\n");
}

void run_table_add(struct str *out, const char *name, const struct run_result *r, int64_t milli)
{
	str_addf(out, "%-4s  %6llu  %6llu  %16llu  %8llu", name, (unsigned long long)r->pods,
		 (unsigned long long)r->placed, (unsigned long long)r->short_of_host,
		 (unsigned long long)r->short_of_cards);
	command_add_percent(out, r->arrived_milli, milli, 6);
	command_add_percent(out, r->allocated_milli, milli, 9);
	command_add_percent(out, at_full(r), milli, 6);
	str_addf(out, "  %11lld", (long long)r->end.empty_cards);
	command_add_percent(out, r->lost_milli, r->end.free_milli, 12);
	str_addc(out, '\n');
}

void run_table_mean(struct str *out, const struct run_result *runs, size_t count, int64_t milli)
{
	struct run_result sum = { 0 };

	for (size_t i = 0; i < count; i++) {
		sum.pods += runs[i].pods;
		sum.placed += runs[i].placed;
		sum.short_of_host += runs[i].short_of_host;
		sum.short_of_cards += runs[i].short_of_cards;
		sum.arrived_milli += runs[i].arrived_milli;
		sum.allocated_milli += runs[i].allocated_milli;
		sum.curve[100] += at_full(&runs[i]);
		sum.end.empty_cards += runs[i].end.empty_cards;
		sum.end.free_milli += runs[i].end.free_milli;
		sum.lost_milli += runs[i].lost_milli;
	}
	sum.curve_count = 101;
	sum.pods /= count;
	sum.placed /= count;
	sum.short_of_host /= count;
	sum.short_of_cards /= count;
	sum.end.empty_cards /= (int64_t)count;
	run_table_add(out, "mean", &sum, milli * (int64_t)count);
}
