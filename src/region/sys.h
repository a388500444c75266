/* System calls without libc's wrappers: those are points where a thread may be cancelled (a guest has none), or came
 * with newer symbol versions (fstat: 2.33, fcntl: 2.28). Results and errno as the wrappers give them. */
#ifndef HM_REGION_SYS_H
#define HM_REGION_SYS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline int sys_open(const char *path, int flags, unsigned mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static inline void sys_close(int fd)
{
	syscall(SYS_close, fd);
}

static inline long sys_read(int fd, void *out, size_t n)
{
	return syscall(SYS_read, fd, out, n);
}

static inline long sys_pread(int fd, void *out, size_t n, off_t at)
{
	return syscall(SYS_pread64, fd, out, n, at);
}

static inline long sys_pwrite(int fd, const void *from, size_t n, off_t at)
{
	return syscall(SYS_pwrite64, fd, from, n, at);
}

static inline int sys_fallocate(int fd, off_t bytes)
{
	return (int)syscall(SYS_fallocate, fd, 0, (off_t)0, bytes);
}

static inline int sys_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static inline int sys_lock(int fd, struct flock *lock)
{
	return (int)syscall(SYS_fcntl, fd, F_SETLK, lock);
}

static inline void sys_sleep_us(long us)
{
	const struct timespec pause = { .tv_nsec = us * 1000 };

	syscall(SYS_nanosleep, &pause, NULL);
}

#endif
