/* A library with a function of its own that has a driver's name, as test doubles and dispatchers do. */
int cuMemAlloc_v2(void);

int cuMemAlloc_v2(void)
{
	return 4711;
}
