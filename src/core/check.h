/* CHECK is for our own bugs and stays on in release builds; never for input. What a failed check does is the program's
 * choice: base/check_abort.c ends a daemon, libvgpu counts and switches itself off. */
#ifndef HM_CORE_CHECK_H
#define HM_CORE_CHECK_H

#include "core/macros.h"

/* Defined once per program or library. May return (libvgpu); code behind a CHECK then goes on. */
void hm_check_failed(const char *file, int line, const char *what);

#define CHECK(x)                                                                                                       \
	do {                                                                                                           \
		if (HM_UNLIKELY(!(x)))                                                                                 \
			hm_check_failed(__FILE__, __LINE__, #x);                                                       \
	} while (0)

/* Objects that know what they are: `magic` is a member set by the constructor and cleared by the destructor, so that a
 * void * callback argument of the wrong or a dead type is noticed. */
#define CHECK_OBJ(p, value) CHECK((p) != NULL && (p)->magic == (value))

#endif
