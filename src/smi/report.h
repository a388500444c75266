/* What hami-smi prints, appended to *out. */
#ifndef HM_SMI_REPORT_H
#define HM_SMI_REPORT_H

#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "hamivgpu/hamivgpu.h"
#include "io/json.h"

/* The tables: node, cards, vGPUs, processes, and what could not be read. At most 98 columns wide. */
void report_table(const struct hamivgpu *h, const char *version, struct str *out);

/* "GPU 0: NVIDIA L40S (UUID: GPU-...)", one line a card. */
void report_list(const struct hamivgpu *h, struct str *out);

/* docs/hami-smi.md describes the keys. */
int report_json(const struct hamivgpu *h, uint64_t now_ms, struct cJSON **out, struct hm_err *e) HM_MUST_USE;
int report_json_text(const struct cJSON *tree, struct str *out, struct hm_err *e) HM_MUST_USE;

/* The same tree as indented "key : value" lines. */
void report_query(const struct cJSON *tree, struct str *out);

#endif
