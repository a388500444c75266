/* Reading a region that may be hostile: by read, never by mapping, so that nothing its owner does to the file can end
 * the reader. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "region/map.h"
#include "region/region.h"
#include "region/shared.h"

struct reader {
	int fd;
	struct region_snapshot *out;
	uint64_t words[HM_MAX_CARDS]; /* `used`, for telling which operations took effect */
};

static int read_at(int fd, size_t at, void *out, size_t n, struct hm_err *e)
{
	ssize_t r = pread(fd, out, n, (off_t)at);

	if (r < 0)
		return hm_err_errno(e, errno, "read");
	if ((size_t)r < n)
		return hm_err_set(e, HM_EPROTO, "cut while being read");
	return 0;
}

/* Text that a container wrote, made fit to be shown. */
static void copy_text(const void *from, size_t n, char *out)
{
	memcpy(out, from, n);
	out[n - 1] = '\0';
	for (size_t i = 0; out[i] != '\0'; i++) {
		if ((unsigned char)out[i] < ' ' || (unsigned char)out[i] > '~')
			out[i] = '?';
	}
}

static int read_cards(struct reader *rd, const struct region_header *h, struct hm_err *e)
{
	struct region_card_config configs[HM_MAX_CARDS];
	struct region_counter counters[HM_MAX_CARDS];
	struct region_compute compute[HM_MAX_CARDS];
	int r = read_at(rd->fd, offsetof(struct region_layout, cards), configs, sizeof configs, e);

	if (r < 0)
		return r;
	r = read_at(rd->fd, offsetof(struct region_layout, counters), counters, sizeof counters, e);
	if (r == 0)
		r = read_at(rd->fd, offsetof(struct region_layout, compute), compute, sizeof compute, e);
	if (r < 0)
		return r;
	rd->out->card_count = h->card_count;
	for (size_t i = 0; i < HM_MAX_CARDS; i++) {
		struct region_card *card = &rd->out->cards[i];

		rd->words[i] = shared_load(&counters[i].used);
		if (i >= h->card_count)
			continue;
		copy_text(configs[i].uuid, sizeof configs[i].uuid, card->uuid);
		card->limit_bytes = HM_MIN(configs[i].limit_bytes, REGION_MAX_BYTES);
		card->cores = HM_MIN(configs[i].cores, 100U);
		card->used_bytes = used_bytes(rd->words[i]);
		card->peak_bytes = HM_MIN(shared_load(&counters[i].peak_bytes), REGION_MAX_BYTES);
		card->refused = shared_load(&counters[i].refused);
		card->spilled = shared_load(&counters[i].spilled);
		card->spilled_bytes = shared_load(&counters[i].spilled_bytes);
		card->spans_ns = shared_load(&compute[i].spans_ns);
	}
	return 0;
}

static int read_troubles(struct reader *rd, struct hm_err *e)
{
	struct region_trouble texts[REGION_TROUBLE_TEXTS];
	struct region_stats stats;
	int r = read_at(rd->fd, offsetof(struct region_layout, stats), &stats, sizeof stats, e);

	if (r < 0)
		return r;
	rd->out->troubles = shared_load(&stats.troubles);
	if (rd->out->troubles == 0)
		return 0;
	r = read_at(rd->fd, offsetof(struct region_layout, troubles), texts, sizeof texts, e);
	if (r < 0)
		return r;
	copy_text(&texts[(rd->out->troubles - 1) % REGION_TROUBLE_TEXTS], sizeof rd->out->last_trouble,
		  rd->out->last_trouble);
	return 0;
}

static int read_process(struct reader *rd, unsigned slot, struct region_process *p, struct hm_err *e)
{
	struct region_lane lanes[REGION_LANES];
	int r = read_at(rd->fd, offsetof(struct region_layout, lanes) + slot * sizeof lanes, lanes, sizeof lanes, e);

	if (r < 0)
		return r;
	for (unsigned card = 0; card < HM_MAX_CARDS; card++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < REGION_LANES; i++)
			sum += lane_balance(&lanes[i], slot, i, card, rd->words[card]);
		/* Read while it changes, a sum may be off by what is under way; nonsense is shown as nothing. */
		p->used_bytes[card] = sum <= REGION_MAX_BYTES ? sum : 0;
	}
	return 0;
}

static int read_processes(struct reader *rd, struct hm_err *e)
{
	struct region_head heads[REGION_SLOTS];
	int r = read_at(rd->fd, offsetof(struct region_layout, heads), heads, sizeof heads, e);

	for (unsigned slot = 0; slot < REGION_SLOTS && r == 0; slot++) {
		struct region_slot_id id = slot_id(&heads[slot]);
		struct region_process *p = &rd->out->processes[rd->out->process_count];

		if (id.pid == 0)
			continue;
		*p = (struct region_process) { .pid = id.pid,
					       .start_time = id.start_time,
					       .pid_namespace = id.pid_namespace };
		r = read_process(rd, slot, p, e);
		rd->out->process_count++;
	}
	return r;
}

int region_snapshot(const char *path, struct region_snapshot *out, struct hm_err *e)
{
	struct region_process *processes = out->processes;
	struct reader rd = { .out = out };
	struct region_header h;
	int r;

	memset(out, 0, sizeof *out);
	out->processes = processes;
	rd.fd = region_open_file(path, false, &h, e);
	if (rd.fd < 0)
		return rd.fd;
	r = read_cards(&rd, &h, e);
	if (r == 0)
		r = read_troubles(&rd, e);
	if (r == 0 && processes != NULL)
		r = read_processes(&rd, e);
	close(rd.fd);
	if (r < 0)
		hm_err_wrap(e, "usage region %s", path);
	return r;
}
