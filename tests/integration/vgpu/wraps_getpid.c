/* Another preload library, behind libvgpu: wraps getpid through RTLD_NEXT, which must lead to libc's and not back here.
 */
#include <dlfcn.h>
#include <unistd.h>

int wrapped_calls;

pid_t getpid(void)
{
	pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getpid");

	wrapped_calls++;
	return wrapped_calls > 1000 ? -1 : next();
}
