#include "hami/node_lock.h"

#include <string.h>

#include "base/utc.h"
#include "core/cursor.h"

static const char separator = ',';

int node_lock_parse(const char *value, struct node_lock *out, struct hm_err *e)
{
	size_t n = strlen(value);
	struct piece time = { value, n };

	*out = (struct node_lock) { 0 };
	if (strchr(value, separator) != NULL) {
		struct cur c = cur_of(value, n);
		struct piece name;
		bool fits;

		time = cur_until(&c, separator);
		fits = piece_copy(cur_until(&c, separator), out->pod_namespace, sizeof out->pod_namespace);
		name = cur_rest(&c);
		if (c.bad || !fits || !piece_copy(name, out->pod_name, sizeof out->pod_name) ||
		    strchr(out->pod_name, separator) != NULL)
			return hm_err_set(e, HM_EPROTO, "node lock \"%.100s\" is not \"<time>,<namespace>,<name>\"",
					  value);
	}
	if (!utc_read(time.p, time.n, &out->taken_s, NULL))
		return hm_err_set(e, HM_EPROTO, "node lock \"%.100s\": not an RFC 3339 time", value);
	return 0;
}

void node_lock_write(const struct node_lock *lock, struct str *out)
{
	str_add_utc(out, (uint64_t)lock->taken_s * 1000);
	str_addf(out, "Z,%s,%s", lock->pod_namespace, lock->pod_name);
}

bool node_lock_releasable(const char *value, const char *pod_namespace, const char *pod_name)
{
	size_t n, name = strlen(pod_name), owner = strlen(pod_namespace) + name + 2;
	const char *tail;

	if (value == NULL)
		return false;
	if (strchr(value, separator) == NULL)
		return true;
	n = strlen(value);
	if (n < owner)
		return false;
	tail = value + n - owner;
	return tail[0] == separator && strncmp(tail + 1, pod_namespace, owner - name - 2) == 0 &&
	       tail[owner - name - 1] == separator && strcmp(tail + owner - name, pod_name) == 0;
}
