/* The client's counts as metrics, under whatever name a program gives the families. Each writes its family's samples;
 * the head (prom_add_head) is the caller's. */
#ifndef HM_KUBE_STATS_PAGE_H
#define HM_KUBE_STATS_PAGE_H

#include "base/str.h"
#include "io/prom_text.h"
#include "kube/stats.h"

/* A counter by `verb` and `code`; 0: no answer came. */
void kube_stats_add_requests(const struct kube_stats *s, const struct prom_family *f, struct str *out);
/* A histogram by `verb`, of those that were used. */
void kube_stats_add_seconds(const struct kube_stats *s, const struct prom_family *f, struct str *out);

#endif
