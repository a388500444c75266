/* The event loop, one per daemon, on libevent; the only reader of clocks. All callbacks run in the loop's thread. Every
 * object may be freed inside any callback, its own included. */
#ifndef HM_IO_LOOP_H
#define HM_IO_LOOP_H

#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"

struct event_base;
struct loop;
struct loop_fd;
struct loop_timer;
struct loop_signal;

int loop_new(struct loop **out, struct hm_err *e) HM_MUST_USE;
void loop_free(struct loop *l); /* all that hangs on it must be freed before */
HM_DEFINE_AUTO(loop, loop_free);

/* Runs until loop_stop. */
int loop_run(struct loop *l, struct hm_err *e) HM_MUST_USE;
/* Handles what is ready, waiting at most wait_ms for something; for tests. */
int loop_run_once(struct loop *l, uint32_t wait_ms, struct hm_err *e) HM_MUST_USE;
void loop_stop(struct loop *l);

/* For libraries that bring events of their own (evhttp, TLS). */
struct event_base *loop_base(struct loop *l);

/* Monotonic time, read anew at each call. */
uint64_t loop_now_ms(const struct loop *l);
uint64_t loop_now_us(const struct loop *l);
/* Wall-clock milliseconds since 1970; for logs and records that people read, never for waiting. */
uint64_t clock_wall_ms(void);

enum { LOOP_READ = 1, LOOP_WRITE = 2 };
/* Calls back while fd is readable or writable, as asked; the fd is borrowed: free this before closing it. */
int loop_fd_new(struct loop *l, int fd, int events, void (*cb)(void *arg, int events), void *arg, struct loop_fd **out,
		struct hm_err *e) HM_MUST_USE;
int loop_fd_set(struct loop_fd *f, int events) HM_MUST_USE; /* other events; 0: none; -HM_EIO */
void loop_fd_free(struct loop_fd *f);
HM_DEFINE_AUTO(loop_fd, loop_fd_free);

/* One shot each time it is armed; made disarmed. Arming again moves it. */
int loop_timer_new(struct loop *l, void (*cb)(void *arg), void *arg, struct loop_timer **out,
		   struct hm_err *e) HM_MUST_USE;
void loop_timer_arm(struct loop_timer *t, uint64_t after_ms);
void loop_timer_disarm(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);
HM_DEFINE_AUTO(loop_timer, loop_timer_free);

int loop_signal_new(struct loop *l, int signo, void (*cb)(void *arg), void *arg, struct loop_signal **out,
		    struct hm_err *e) HM_MUST_USE;
void loop_signal_free(struct loop_signal *s);
HM_DEFINE_AUTO(loop_signal, loop_signal_free);

#endif
