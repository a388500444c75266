/* A libvgpu.so with one of each fault that check_symbols.py must report by name. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int mutex; /* exported under a name that programs use */
static __thread int per_thread;

__attribute__((constructor)) static void at_start(void)
{
	per_thread++;
}

int cuMemAlloc_v2(void)
{
	pthread_t t = pthread_self();

	puts("allocating");
	pthread_detach(t); /* GLIBC_2.34 */
	return malloc(1) != NULL ? per_thread : 0;
}
