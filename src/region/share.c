/* The words that are written to a region from outside its container: by pread and pwrite, never by mapping. */
#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "region/map.h"
#include "region/region.h"
#include "region/sys.h"

#define ORDER(member)                                                                                                  \
	{                                                                                                              \
		offsetof(struct region_orders, member), offsetof(struct region_compute, member)                        \
	}

/* Where each order stands in a card's words. */
static const struct {
	size_t here, there;
} orders[] = { ORDER(alpha_until_ns), ORDER(alpha), ORDER(error_ns), ORDER(open_until_ns), ORDER(hold_until_ns) };

int region_share_open(const char *path, struct hm_err *e)
{
	struct region_header h;

	return region_open_file(path, true, &h, e);
}

int region_share_card(int fd, const char *uuid, struct hm_err *e)
{
	struct region_card_config cards[HM_MAX_CARDS];
	struct region_header h;

	if (sys_pread(fd, &h, sizeof h, 0) != (long)sizeof h ||
	    sys_pread(fd, cards, sizeof cards, offsetof(struct region_layout, cards)) != (long)sizeof cards)
		return hm_err_set(e, HM_EPROTO, "usage region: cut");
	for (uint32_t i = 0; i < HM_MIN(h.card_count, (uint32_t)HM_MAX_CARDS); i++) {
		if (strncmp(cards[i].uuid, uuid, HM_UUID_BYTES) == 0)
			return (int)i;
	}
	return hm_err_set(e, HM_ENOTFOUND, "usage region: no card %s", uuid);
}

static off_t place(unsigned card, size_t offset)
{
	return (off_t)(offsetof(struct region_layout, compute) + card * sizeof(struct region_compute) + offset);
}

int region_share_read(int fd, unsigned card, uint64_t *spans_ns, struct region_orders *out, struct hm_err *e)
{
	uint8_t words[sizeof(struct region_compute)];
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return hm_err_errno(e, errno, "usage region");
	if (st.st_nlink == 0)
		return hm_err_set(e, HM_ENOTFOUND, "usage region: deleted or replaced");
	if (st.st_size != (off_t)sizeof(struct region_layout) ||
	    sys_pread(fd, words, sizeof words, place(card, 0)) != (long)sizeof words)
		return hm_err_set(e, HM_EPROTO, "usage region: cut or enlarged");
	memcpy(spans_ns, words + offsetof(struct region_compute, spans_ns), sizeof *spans_ns);
	for (size_t i = 0; i < HM_COUNT(orders); i++)
		memcpy((uint8_t *)out + orders[i].here, words + orders[i].there, sizeof(uint64_t));
	return 0;
}

/* Each word is 8 bytes at a multiple of 8, which the kernel copies at once: who has it mapped sees the old or the new.
 */
int region_share_write(int fd, unsigned card, const struct region_orders *stands, const struct region_orders *want,
		       struct hm_err *e)
{
	for (size_t i = 0; i < HM_COUNT(orders); i++) {
		const uint8_t *word = (const uint8_t *)want + orders[i].here;

		if (memcmp(word, (const uint8_t *)stands + orders[i].here, sizeof(uint64_t)) == 0)
			continue;
		if (sys_pwrite(fd, word, sizeof(uint64_t), place(card, orders[i].there)) != (long)sizeof(uint64_t))
			return hm_err_errno(e, errno, "usage region: write");
	}
	return 0;
}
