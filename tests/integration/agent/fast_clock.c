/* Preloaded into a program: its monotonic clock and what it waits for run FAST_CLOCK times as fast. An hour without an
 * API server is then a minute's test. Other programs, and what the kernel times (TCP), are as fast as ever. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define NS 1000000000LL

int clock_gettime(clockid_t id, struct timespec *ts);
int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);
int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *before);

static long long factor(void)
{
	static long long known;
	long long read = 0;

	if (known > 0)
		return known;
	for (const char *p = getenv("FAST_CLOCK"); p != NULL && *p >= '0' && *p <= '9'; p++)
		read = 10 * read + (*p - '0');
	known = read > 0 ? read : 1;
	return known;
}

static struct timespec of_ns(long long ns)
{
	return (struct timespec) { ns / NS, ns % NS };
}

/* Counted from the machine's own start, so that all processes and threads agree. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = NEXT(clock_gettime)(id, ts);

	if (r == 0 && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE))
		*ts = of_ns((ts->tv_sec * NS + ts->tv_nsec) * factor());
	return r;
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
	int shorter = timeout_ms > 0 ? (int)((timeout_ms + factor() - 1) / factor()) : timeout_ms;

	return NEXT(epoll_wait)(fd, events, count, shorter);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	struct itimerspec shorter = *value;
	long long ns = value->it_value.tv_sec * NS + value->it_value.tv_nsec;

	if (ns > 0)
		shorter.it_value = of_ns((ns + factor() - 1) / factor());
	return NEXT(timerfd_settime)(fd, flags, &shorter, before);
}
