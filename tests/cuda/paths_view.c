/* What a program sees of the card and of its processes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "books.h"
#include "check.h"
#include "child.h"
#include "fill.h"
#include "nvml.h"
#include "paths.h"
#include "views.h"

/* Memory, before and after an allocation. */
static void run_memory(void)
{
	CUdeviceptr p;

	check_use(0);
	size_t start = views_match_books(0), total = 0, free_bytes = 0;

	OK(cuMemGetInfo_v2(&free_bytes, &total));
	HOLDS(total == check_limit(), "cuMemGetInfo shows a total of %zu", total);
	OK(cuDeviceTotalMem_v2(&total, 0));
	HOLDS(total == check_limit(), "cuDeviceTotalMem shows %zu", total);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	HOLDS(check_same(views_match_books(0), start + fill_piece()), "after an allocation: %zu",
	      views_used(0) - start);
	OK(cuMemFree_v2(p));
	HOLDS(check_same(views_match_books(0), start), "after the free: %zu", views_used(0) - start);
}

/* A process that is none of the container's, in a role; it has said that it is ready. */
static struct child stranger(const char *role)
{
	char *preload = getenv("LD_PRELOAD");

	preload = preload != NULL ? strdup(preload) : NULL;
	unsetenv("LD_PRELOAD");
	struct child c = child_start_ready(role);

	if (preload != NULL)
		setenv("LD_PRELOAD", preload, 1);
	free(preload);
	return c;
}

struct seen {
	int rc;
	unsigned count, pid;
	unsigned long long bytes;
};

/* The first entry's pid and bytes lie alike in all generations. */
static struct seen ask(const char *name, struct nvml_device *dev)
{
	int (*list)(struct nvml_device *, unsigned *, void *);
	char room[64 * sizeof(struct nvml_process_info)] = { 0 };
	struct seen s = { .count = 64 };
	void *address = nvml_symbol(name);

	if (address == NULL)
		return (struct seen) { .rc = NVML_ERROR_FUNCTION_NOT_FOUND };
	memcpy(&list, &address, sizeof list);
	s.rc = list(dev, &s.count, room);
	memcpy(&s.pid, room, sizeof s.pid);
	memcpy(&s.bytes, room + offsetof(struct nvml_process_info, used), sizeof s.bytes);
	return s;
}

static void expect_us_alone(const char *name, struct seen s, size_t used)
{
	if (s.rc == NVML_ERROR_FUNCTION_NOT_FOUND || s.rc == NVML_ERROR_NOT_SUPPORTED)
		return;
	HOLDS(s.rc == NVML_SUCCESS && s.count == 1 && s.pid == (unsigned)getpid(),
	      "%s: code %d, %u processes, first %u, we are %d", name, s.rc, s.count, s.pid, (int)getpid());
	HOLDS(s.bytes == used, "%s shows %llu of us, the views %zu", name, s.bytes, used);
}

static struct nvml_device *first_card(void)
{
	char uuid[UUID_TEXT];

	nvml_uuid_of(0, uuid);
	return nvml_device_of(uuid);
}

static void run_processes(void)
{
	static const struct {
		const char *name;
		bool lists_us;
	} lists[] = {
		{ "nvmlDeviceGetComputeRunningProcesses", true },
		{ "nvmlDeviceGetComputeRunningProcesses_v2", true },
		{ "nvmlDeviceGetComputeRunningProcesses_v3", true },
		{ "nvmlDeviceGetGraphicsRunningProcesses", false },
		{ "nvmlDeviceGetGraphicsRunningProcesses_v2", false },
		{ "nvmlDeviceGetGraphicsRunningProcesses_v3", false },
		{ "nvmlDeviceGetMPSComputeRunningProcesses", false },
		{ "nvmlDeviceGetMPSComputeRunningProcesses_v2", false },
		{ "nvmlDeviceGetMPSComputeRunningProcesses_v3", false },
	};
	CUdeviceptr p;

	check_use(0);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	struct child other = stranger("visit");
	size_t used = views_used(0);

	for (size_t i = 0; i < HM_COUNT(lists); i++) {
		struct seen s = ask(lists[i].name, first_card());

		if (lists[i].lists_us)
			expect_us_alone(lists[i].name, s, used);
		else if (s.rc == NVML_SUCCESS)
			HOLDS(s.count == 0, "%s: %u processes", lists[i].name, s.count);
	}
	child_end(&other);
}

static void run_process_details(void)
{
	int (*list)(struct nvml_device *, struct nvml_process_detail_list *);
	struct nvml_process_detail room[64] = { 0 };
	struct nvml_process_detail_list all = { NVML_PROCESS_DETAIL_LIST_V1, NVML_PROCESS_MODE_COMPUTE, HM_COUNT(room),
						room };
	void *address = nvml_symbol("nvmlDeviceGetRunningProcessDetailList");
	CUdeviceptr p;

	if (address == NULL)
		check_not_available("this NVML has no nvmlDeviceGetRunningProcessDetailList");
	memcpy(&list, &address, sizeof list);
	check_use(0);
	OK(cuMemAlloc_v2(&p, fill_piece()));
	struct child other = stranger("visit");
	int rc = list(first_card(), &all);

	if (rc == NVML_ERROR_NOT_SUPPORTED)
		check_not_available("this card has no list of process details");
	expect_us_alone("nvmlDeviceGetRunningProcessDetailList",
			(struct seen) { rc, all.count, room[0].pid, room[0].used }, views_used(0));
	child_end(&other);
}

/* A stranger's work on the card is nobody's business here. */
static void run_utilisation(void)
{
	int (*samples)(struct nvml_device *, struct nvml_process_utilization *, unsigned *, unsigned long long);
	int (*infos)(struct nvml_device *, struct nvml_processes_utilization_info *);
	struct nvml_process_utilization one[256];
	struct nvml_process_utilization_info two[256];
	struct nvml_processes_utilization_info all = { NVML_PROCESSES_UTILIZATION_INFO_V1, HM_COUNT(two), 0, two };
	void *address_1 = nvml_symbol("nvmlDeviceGetProcessUtilization"),
	     *address_2 = nvml_symbol("nvmlDeviceGetProcessesUtilizationInfo");
	unsigned count = HM_COUNT(one), strangers = 0;

	check_use(0);
	struct child other = stranger("busy");

	memcpy(&samples, &address_1, sizeof samples);
	int rc = address_1 != NULL ? samples(first_card(), one, &count, 0) : NVML_ERROR_NOT_SUPPORTED;

	for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++)
		strangers += one[i].pid != (unsigned)getpid();
	HOLDS(strangers == 0, "nvmlDeviceGetProcessUtilization shows %u that are not ours", strangers);
	memcpy(&infos, &address_2, sizeof infos);
	rc = address_2 != NULL ? infos(first_card(), &all) : NVML_ERROR_NOT_SUPPORTED;
	strangers = 0;
	for (unsigned i = 0; rc == NVML_SUCCESS && i < all.count; i++)
		strangers += two[i].pid != (unsigned)getpid();
	if (check_bare() && rc != NVML_SUCCESS)
		check_not_available("this card keeps no utilisation by process: %d", rc);
	HOLDS(strangers == 0, "nvmlDeviceGetProcessesUtilizationInfo shows %u that are not ours", strangers);
	child_end(&other);
}

static bool accounting_is_on(void)
{
	int (*ask_mode)(struct nvml_device *, unsigned *);
	void *address = nvml_symbol("nvmlDeviceGetAccountingMode");
	unsigned mode = 0;

	memcpy(&ask_mode, &address, sizeof ask_mode);
	return address != NULL && ask_mode(first_card(), &mode) == NVML_SUCCESS && mode != 0;
}

/* What the driver keeps of each process is shown of ours alone. */
static void run_accounting(void)
{
	int (*pids)(struct nvml_device *, unsigned *, unsigned *);
	int (*stats)(struct nvml_device *, unsigned, struct nvml_accounting_stats *);
	int (*stats_2)(struct nvml_device *, struct nvml_accounting_stats_v2 *);
	void *address_1 = nvml_symbol("nvmlDeviceGetAccountingPids"),
	     *address_2 = nvml_symbol("nvmlDeviceGetAccountingStats"),
	     *address_3 = nvml_symbol("nvmlDeviceGetAccountingStats_v2");
	struct nvml_accounting_stats its = { 0 };
	unsigned list[4096], count = HM_COUNT(list), strangers = 0;

	if (address_1 == NULL || address_2 == NULL)
		check_not_available("this NVML keeps no accounts");
	if (!accounting_is_on())
		check_not_available("accounting is off on this card");
	memcpy(&pids, &address_1, sizeof pids);
	memcpy(&stats, &address_2, sizeof stats);
	memcpy(&stats_2, &address_3, sizeof stats_2);
	check_use(0);
	struct child other = stranger("visit");
	struct nvml_accounting_stats_v2 its_2 = { .pid = (unsigned)other.pid };
	int rc = pids(first_card(), &count, list);

	for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++)
		strangers += list[i] != (unsigned)getpid();
	HOLDS(strangers == 0, "nvmlDeviceGetAccountingPids shows %u that are not ours", strangers);
	rc = stats(first_card(), (unsigned)other.pid, &its);
	HOLDS(rc != NVML_SUCCESS, "nvmlDeviceGetAccountingStats tells of another's process");
	if (address_3 != NULL) {
		rc = stats_2(first_card(), &its_2);
		HOLDS(rc != NVML_SUCCESS, "nvmlDeviceGetAccountingStats_v2 tells of another's process");
	}
	child_end(&other);
}

/* Sessions of encoders, of either kind. */
static void check_sessions(const char *call, const unsigned *words, size_t words_each, unsigned count, int rc)
{
	unsigned strangers = 0;

	if (rc == NVML_ERROR_NOT_SUPPORTED || (check_bare() && count == 0))
		check_not_available("nothing encodes on this card");
	for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++)
		strangers += words[i * words_each + 1] != (unsigned)getpid();
	HOLDS(strangers == 0, "%s shows %u that are not ours", call, strangers);
}

static void run_encoders(void)
{
	int (*encoders)(struct nvml_device *, unsigned *, struct nvml_encoder_session *);
	int (*fbcs)(struct nvml_device *, unsigned *, struct nvml_fbc_session *);
	void *address_1 = nvml_symbol("nvmlDeviceGetEncoderSessions"),
	     *address_2 = nvml_symbol("nvmlDeviceGetFBCSessions");
	struct nvml_encoder_session one[256];
	struct nvml_fbc_session two[256];
	unsigned count_1 = HM_COUNT(one), count_2 = HM_COUNT(two);

	if (address_1 == NULL || address_2 == NULL)
		check_not_available("this NVML knows no encoders");
	memcpy(&encoders, &address_1, sizeof encoders);
	memcpy(&fbcs, &address_2, sizeof fbcs);
	check_use(0);
	struct child other = stranger("visit");

	int rc = encoders(first_card(), &count_1, one);

	check_sessions("nvmlDeviceGetEncoderSessions", &one[0].session, sizeof one[0] / 4, count_1, rc);
	rc = fbcs(first_card(), &count_2, two);
	check_sessions("nvmlDeviceGetFBCSessions", &two[0].session, sizeof two[0] / 4, count_2, rc);
	child_end(&other);
}

const struct path paths_view[] = {
	{ "view-memory", run_memory, BARE_BREAKS },
	{ "view-processes", run_processes, BARE_BREAKS },
	{ "view-process-details", run_process_details, BARE_BREAKS },
	{ "view-accounting", run_accounting, BARE_BREAKS },
	{ "view-encoders", run_encoders, BARE_BREAKS },
	{ "view-utilisation", run_utilisation, BARE_BREAKS },
	{ 0 },
};
