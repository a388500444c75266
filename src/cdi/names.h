/* Which names and texts a CDI spec may hold: the rules of the runtimes' CDI library, so that what we write or copy is
 * never the reason for a container that does not start. */
#ifndef HM_CDI_NAMES_H
#define HM_CDI_NAMES_H

#include <stdbool.h>

bool cdi_kind_ok(const char *kind);        /* "vendor.domain/class" */
bool cdi_device_name_ok(const char *name); /* letters and digits, inside also _ - . : */
bool cdi_env_name_ok(const char *name);    /* not empty, without '=' */
bool cdi_permissions_ok(const char *s);    /* of r, w, m */
bool cdi_hook_name_ok(const char *name);   /* an OCI lifecycle hook */

#endif
