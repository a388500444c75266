/* Work done aside: a forked child reckons with this process's memory as it is now, and sends back some bytes. For what
 * takes long and writes nothing, in a program that has one thread: a second one would make each malloc and free of the
 * first slower (glibc then takes locks), for ever. */
#ifndef HM_IO_ASIDE_H
#define HM_IO_ASIDE_H

#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct aside;

struct aside_work {
	/* In the child: fills in `out`. It has no file but 0 to 2, and dies with us. */
	void (*work)(void *arg, uint8_t *out, size_t n);
	/* Once, in the loop; fewer than n where the child could not end well. The aside is freed before. */
	void (*done)(void *arg, const uint8_t *bytes, size_t n);
	void *arg;
};

/* `arg` lives until done or aside_free. -HM_EIO, -HM_ENOMEM: no child can be made. */
int aside_start(struct loop *l, const struct aside_work *w, size_t n, struct aside **out, struct hm_err *e) HM_MUST_USE;
void aside_free(struct aside *a); /* ends the child; done is not called */
HM_DEFINE_AUTO(aside, aside_free);

#endif
