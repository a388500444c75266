/* Whatever is taken can be written and read back: the same shares, one entry more, and from then on the same text but
 * for one ";" each time. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "hami/devices_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_pod_devices d = { 0 };
	hm_auto_pod_devices again = { 0 };
	hm_auto_str first = { 0 };
	hm_auto_str second = { 0 };
	hm_auto_str text = { 0 };
	struct hm_err e;

	str_add_n(&text, data, n);
	if (devices_text_parse(str_text(&text), &d, &e) < 0)
		return 0;
	devices_text_write(&d, &first);
	if (first.n > DEVICES_TEXT_MAX_BYTES)
		return 0;
	CHECK(devices_text_parse(str_text(&first), &again, &e) == 0);
	CHECK(again.entry_count == d.entry_count + 1 && again.share_count == d.share_count);
	CHECK(pod_devices_filled(&again) == pod_devices_filled(&d));
	devices_text_write(&again, &second);
	CHECK(second.n == first.n + 1 && memcmp(second.p, first.p, first.n) == 0);
	while (pod_devices_filled(&d) > 0)
		pod_devices_erase(&d, pod_devices_find(&d, pod_devices_filled(&d) - 1));
	return 0;
}
