/* A preload that comes after libvgpu.so: CLOCK_MONOTONIC and sleeps of libvgpu and of the program itself are those of
 * the simulated node's virtual clock, where it has one. All others (the simulated driver, libc) keep the machine's. */
#include "virtual_time.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"
#include "sim/lib/sim_client.h"

#define SECOND UINT64_C(1000000000)
#define BOOT_NS (1000 * SECOND) /* a machine is up for a while before programs start */

#define EXPORT __attribute__((visibility("default")))

static struct {
	uintptr_t from, to;
} guests[2]; /* the program, libvgpu.so */

static int find_guest(struct dl_phdr_info *info, size_t size, void *arg)
{
	unsigned *objects = arg;
	unsigned guest = (*objects)++ == 0 ? 0 : 1;

	(void)size;
	if (guest == 1 && strstr(info->dlpi_name, "/libvgpu.so") == NULL)
		return 0;
	guests[guest].from = UINTPTR_MAX;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		guests[guest].from = HM_MIN(guests[guest].from, at);
		guests[guest].to = HM_MAX(guests[guest].to, at + info->dlpi_phdr[i].p_memsz);
	}
	return 0;
}

static __attribute__((constructor)) void find_guests(void)
{
	unsigned objects = 0;

	dl_iterate_phdr(find_guest, &objects);
}

/* Is the caller of the function that asks one whose time is virtual? */
static bool is_virtual(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	return ((at >= guests[0].from && at < guests[0].to) || (at >= guests[1].from && at < guests[1].to)) &&
	       sim_attach() == SIM_OK && sim_node()->clock == SIM_CLOCK_VIRTUAL;
}

static long real_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*_Atomic real)(long, ...);

	if (real == NULL) {
		void *found = dlsym(RTLD_NEXT, "syscall");

		memcpy((void *)&real, &found, sizeof found);
	}
	return real(number, a, b, c, d, e, f);
}

static int sleep_for(const struct timespec *t)
{
	uint64_t ns = (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;

	return sim_sleep_until(sim_now_ns() + ns) == SIM_OK ? 0 : EINTR;
}

EXPORT void virtual_time_meet(unsigned processes)
{
	if (sim_attach() == SIM_OK && sim_node()->clock == SIM_CLOCK_VIRTUAL)
		(void)sim_sleep_together(sim_now_ns() + VIRTUAL_TIME_MEET_NS, processes);
}

EXPORT int clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t now;

	if (id != CLOCK_MONOTONIC || !is_virtual(__builtin_return_address(0)))
		return (int)real_syscall(SYS_clock_gettime, id, (long)t, 0, 0, 0, 0);
	now = sim_now_ns() + BOOT_NS;
	*t = (struct timespec) { .tv_sec = (time_t)(now / SECOND), .tv_nsec = (long)(now % SECOND) };
	return 0;
}

EXPORT int nanosleep(const struct timespec *t, struct timespec *left)
{
	if (is_virtual(__builtin_return_address(0)))
		return sleep_for(t) == 0 ? 0 : -1;
	return (int)real_syscall(SYS_nanosleep, (long)t, (long)left, 0, 0, 0, 0);
}

/* libvgpu sleeps without libc's wrapper. */
EXPORT long syscall(long number, ...)
{
	long p[6];
	va_list list;

	va_start(list, number);
	for (unsigned i = 0; i < HM_COUNT(p); i++)
		p[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_nanosleep && is_virtual(__builtin_return_address(0)))
		return sleep_for((const struct timespec *)p[0]) == 0 ? 0 : -1;
	return real_syscall(number, p[0], p[1], p[2], p[3], p[4], p[5]);
}
