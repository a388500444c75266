#include "model/resource_name.h"

#include <string.h>

enum { MAX_BYTES = 200 };

/* A domain that is not Kubernetes' own, a slash, a name. */
const char *resource_name_fault(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
	const char *slash = strchr(name, '/');

	if (slash == NULL || slash == name || slash[1] == '\0' || strchr(slash + 1, '/') != NULL ||
	    strlen(name) > MAX_BYTES)
		return "is not of the form domain/name";
	if (name[strspn(name, good)] != '\0')
		return "has a character that is no letter, digit, '-', '_' or '.'";
	if (strstr(name, "kubernetes.io/") != NULL)
		return "is in kubernetes.io, which the kubelet refuses";
	return NULL;
}
