#include "hami/replica_id.h"

#include <stdint.h>
#include <string.h>

#include "contract/hami.h"
#include "contract/names.h"
#include "core/cursor.h"
#include "core/fmt.h"

enum { REPLICA_DASHES = 6 }; /* "GPU-" and a UUID have five */

bool replica_id_write(const char *uuid, unsigned i, char *out, size_t cap)
{
	return hm_fmt(out, cap, "%s" HAMI_REPLICA_SEPARATOR "%u", uuid, i) < cap;
}

bool replica_id_card(const char *id, char *out, size_t cap)
{
	size_t n = strlen(id), dashes = 0;
	const char *colons = strstr(id, HM_DEVICE_ID_SEPARATOR), *last = strrchr(id, '-');
	uint64_t number;

	for (const char *p = id; *p != '\0'; p++)
		dashes += *p == '-';
	if (colons != NULL)
		n = (size_t)(colons - id);
	else if (dashes == REPLICA_DASHES &&
		 piece_u64((struct piece) { last + 1, strlen(last + 1) }, INT64_MAX, &number))
		n = (size_t)(last - id);
	return piece_copy((struct piece) { id, n }, out, cap);
}
