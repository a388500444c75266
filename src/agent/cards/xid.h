/* What the driver's Xid errors mean, and whose they are. The table is xids.def. */
#ifndef HM_AGENT_CARDS_XID_H
#define HM_AGENT_CARDS_XID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum xid_class {
	XID_NOTE,        /* says something of the card that changes nothing now */
	XID_APPLICATION, /* a program's own error: it is restarted, the card is well */
	XID_CARD,        /* the card's; well again once it has answered for a while */
	XID_RESET        /* the card's, and it needs a reset or reboot first */
};

/* Of a number that the catalogue does not have: XID_CARD. A card that is spared for a minute costs less than one that
 * is given to the next pod. */
enum xid_class xid_class(unsigned xid);
const char *xid_words(unsigned xid);  /* "double-bit ECC error"; never NULL */
const char *xid_action(unsigned xid); /* NVIDIA's, "RESET_GPU"; "none" where there is none */

/* What marks a card, as it was configured: --device-health-checks, and HAMi's variables DP_DISABLE_HEALTHCHECKS and
 * DP_ENABLE_HEALTHCHECKS, which list numbers, "all" or "xids". Enabling wins over disabling. */
struct health_policy {
	bool ecc;  /* uncorrectable ECC errors that no Xid tells of */
	bool lost; /* it is lost, errs, or the driver says that it must be reset */
	bool any;  /* anything at all */
	bool all_off, all_on;
	uint64_t off[16], on[16]; /* Xids below 1,024, a bit each */
};

/* checks: "all", "none", or some of "xid", "ecc", "lost"; NULL: all. disable, enable: NULL or "": nothing is listed.
 * Elements that are none of these are added to *unread (if given), comma between. */
void health_policy_init(struct health_policy *p, const char *checks, const char *disable, const char *enable,
			struct str *unread);
/* The class by the policy: a disabled Xid is a note, an enabled one is the card's at least. */
enum xid_class health_policy_class(const struct health_policy *p, unsigned xid);

#endif
