/* One error type, on the caller's stack: set where it happens, wrapped once a layer, logged once at the top.
 * A message reads "outer: inner: what". Never allocates; safe in libvgpu. */
#ifndef HM_CORE_ERR_H
#define HM_CORE_ERR_H

#include "core/macros.h"

enum hm_code {
	HM_OK = 0,
	HM_ENOMEM,       /* an allocation failed */
	HM_EINVAL,       /* input or configuration is not acceptable */
	HM_EPROTO,       /* bytes from a peer or a file do not follow their format */
	HM_EIO,          /* a system call failed; the message has the errno text */
	HM_ENOTFOUND,    /* what was named does not exist */
	HM_EEXIST,       /* what was to be made exists already */
	HM_EAGAIN,       /* not now; trying again later may help */
	HM_EPERM,        /* not allowed */
	HM_ELIMIT,       /* a named limit was reached */
	HM_ETIMEDOUT,    /* a deadline passed */
	HM_EUNSUPPORTED, /* the peer, driver or platform cannot do this */
	HM_EINTERNAL,    /* our own bug, or an answer that makes no sense */
	HM_CODE_COUNT
};

struct hm_err {
	int code;      /* enum hm_code */
	char msg[512]; /* NUL-terminated, cut where it does not fit */
};

/* Set the error. Returns -code, so that a check is one statement: return hm_err_set(e, HM_EINVAL, "..."); e may be
 * NULL. */
int hm_err_set(struct hm_err *e, int code, const char *fmt, ...) HM_PRINTF(3, 4);

/* As hm_err_set with HM_EIO (ENOENT becomes HM_ENOTFOUND, ENOMEM HM_ENOMEM, EEXIST HM_EEXIST, EACCES and EPERM
 * HM_EPERM) and ": <text of errnum>" behind the message. */
int hm_err_errno(struct hm_err *e, int errnum, const char *fmt, ...) HM_PRINTF(3, 4);

/* Prefix the message with "<fmt>: ". Returns -e->code; where e is NULL the cause is not known here: -HM_EINTERNAL. */
int hm_err_wrap(struct hm_err *e, const char *fmt, ...) HM_PRINTF(2, 3);

/* The text of an errno value, in English, without locale or allocation: "No such file or directory". */
const char *hm_errno_text(int errnum);

#endif
