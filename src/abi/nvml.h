/* Our own declarations of the NVML interface (libnvidia-ml.so.1): what we call, hook or answer, nothing else.
 * Results are `int` (an enum of NVML's, NVML_SUCCESS is 0), handles are opaque pointers. To call through dlsym:
 *
 *     __typeof__(nvmlInit_v2) *init;
 */
#ifndef HM_ABI_NVML_H
#define HM_ABI_NVML_H

#include <stddef.h>

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_ALREADY_INITIALIZED = 5,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_INSUFFICIENT_POWER = 8,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_IRQ_ISSUE = 11,
	NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_CORRUPTED_INFOROM = 14,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_DEPRECATED = 26,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
	NVML_ERROR_INVALID_STATE = 29,
	NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
	NVML_ERROR_UNKNOWN = 999,
};

enum {
	NVML_UUID_BYTES = 80,
	NVML_NAME_BYTES = 64,
	NVML_NAME_V2_BYTES = 96,
	NVML_VERSION_BYTES = 80,
	NVML_SERIAL_BYTES = 30,
	NVML_PCI_BUS_ID_BYTES = 32,
	NVML_PCI_BUS_ID_V2_BYTES = 16,
	NVML_MAX_NVLINKS = 18, /* of driver generations up to Hopper; newer headers say 36 */
};

enum nvml_init_flag { NVML_INIT_FLAG_NO_GPUS = 1, NVML_INIT_FLAG_NO_ATTACH = 2 };
enum nvml_feature { NVML_FEATURE_DISABLED, NVML_FEATURE_ENABLED };
enum nvml_brand {
	NVML_BRAND_UNKNOWN = 0,
	NVML_BRAND_QUADRO = 1,
	NVML_BRAND_TESLA = 2,
	NVML_BRAND_GEFORCE = 5,
	NVML_BRAND_NVIDIA_RTX = 13,
	NVML_BRAND_NVIDIA = 14,
	NVML_BRAND_GEFORCE_RTX = 15
};
enum nvml_arch {
	NVML_ARCH_TURING = 6,
	NVML_ARCH_AMPERE = 7,
	NVML_ARCH_ADA = 8,
	NVML_ARCH_HOPPER = 9,
	NVML_ARCH_BLACKWELL = 10
};
enum nvml_topology {
	NVML_TOPOLOGY_INTERNAL = 0,    /* one board */
	NVML_TOPOLOGY_SINGLE = 10,     /* one PCIe switch */
	NVML_TOPOLOGY_MULTIPLE = 20,   /* several switches, no host bridge */
	NVML_TOPOLOGY_HOSTBRIDGE = 30, /* one host bridge */
	NVML_TOPOLOGY_NODE = 40,       /* one NUMA node */
	NVML_TOPOLOGY_SYSTEM = 50
};
enum nvml_p2p_caps {
	NVML_P2P_CAPS_INDEX_READ = 0,
	NVML_P2P_CAPS_INDEX_WRITE = 1,
	NVML_P2P_CAPS_INDEX_NVLINK = 2,
	NVML_P2P_CAPS_INDEX_ATOMICS = 3,
	NVML_P2P_CAPS_INDEX_PCI = 4,
	NVML_P2P_CAPS_INDEX_UNKNOWN = 5
};
enum nvml_p2p_status {
	NVML_P2P_STATUS_OK = 0,
	NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
	NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
	NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
	NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4,
	NVML_P2P_STATUS_NOT_SUPPORTED = 5,
	NVML_P2P_STATUS_UNKNOWN = 6
};
enum nvml_nvlink_cap {
	NVML_NVLINK_CAP_P2P_SUPPORTED,
	NVML_NVLINK_CAP_SYSMEM_ACCESS,
	NVML_NVLINK_CAP_P2P_ATOMICS,
	NVML_NVLINK_CAP_SYSMEM_ATOMICS,
	NVML_NVLINK_CAP_SLI_BRIDGE,
	NVML_NVLINK_CAP_VALID
};
enum nvml_nvlink_device {
	NVML_NVLINK_DEVICE_GPU = 0,
	NVML_NVLINK_DEVICE_IBMNPU = 1,
	NVML_NVLINK_DEVICE_SWITCH = 2,
	NVML_NVLINK_DEVICE_UNKNOWN = 255
};
enum nvml_clock { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO };
enum nvml_clock_id { NVML_CLOCK_ID_CURRENT, NVML_CLOCK_ID_APP_TARGET, NVML_CLOCK_ID_APP_DEFAULT, NVML_CLOCK_ID_MAX };
enum nvml_temperature { NVML_TEMPERATURE_GPU = 0 };
enum nvml_temperature_threshold {
	NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
	NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
	NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
	NVML_TEMPERATURE_THRESHOLD_GPU_MAX
};
enum nvml_pstate { NVML_PSTATE_0 = 0, NVML_PSTATE_8 = 8 };
enum nvml_compute_mode { NVML_COMPUTEMODE_DEFAULT = 0 };
enum nvml_memory_error { NVML_MEMORY_ERROR_CORRECTED, NVML_MEMORY_ERROR_UNCORRECTED };
enum nvml_ecc_counter { NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC };
enum nvml_bus { NVML_BUS_TYPE_PCIE = 2 };
enum nvml_affinity_scope { NVML_AFFINITY_SCOPE_NODE, NVML_AFFINITY_SCOPE_SOCKET };
enum nvml_virtualization_mode { NVML_GPU_VIRTUALIZATION_MODE_NONE };
enum nvml_sampling {
	NVML_TOTAL_POWER_SAMPLES = 0,
	NVML_GPU_UTILIZATION_SAMPLES = 1,
	NVML_MEMORY_UTILIZATION_SAMPLES = 2
};
enum nvml_value_type {
	NVML_VALUE_TYPE_DOUBLE,
	NVML_VALUE_TYPE_UNSIGNED_INT,
	NVML_VALUE_TYPE_UNSIGNED_LONG,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
	NVML_VALUE_TYPE_SIGNED_LONG_LONG,
	NVML_VALUE_TYPE_SIGNED_INT
};
enum nvml_field {
	NVML_FI_DEV_ECC_CURRENT = 1,
	NVML_FI_DEV_MEMORY_TEMP = 82,
	NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83, /* mJ since the driver was loaded */
	NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90,
	NVML_FI_DEV_NVLINK_LINK_COUNT = 91,
	NVML_FI_DEV_POWER_AVERAGE = 185, /* mW, as all of these */
	NVML_FI_DEV_POWER_INSTANT = 186,
	NVML_FI_DEV_POWER_MIN_LIMIT = 187,
	NVML_FI_DEV_POWER_MAX_LIMIT = 188,
	NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189,
	NVML_FI_DEV_POWER_CURRENT_LIMIT = 190,
	NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230, /* enum nvml_recovery; drivers since R565 */
	NVML_FI_MAX = 308
};
enum nvml_recovery {
	NVML_GPU_RECOVERY_ACTION_NONE,
	NVML_GPU_RECOVERY_ACTION_GPU_RESET,
	NVML_GPU_RECOVERY_ACTION_NODE_REBOOT,
	NVML_GPU_RECOVERY_ACTION_DRAIN_P2P,
	NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET
};
/* Event types of an nvmlEventSet: bits. */
#define NVML_EVENT_SINGLE_BIT_ECC 0x1ULL
#define NVML_EVENT_DOUBLE_BIT_ECC 0x2ULL
#define NVML_EVENT_XID_CRITICAL 0x8ULL

/* MIG. Profiles are NVML's own numbers, not the driver's (which are in the profile info). */
enum {
	NVML_DEVICE_MIG_DISABLE = 0,
	NVML_DEVICE_MIG_ENABLE = 1,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE = 0,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE = 1,
	NVML_GPU_INSTANCE_PROFILE_3_SLICE = 2,
	NVML_GPU_INSTANCE_PROFILE_4_SLICE = 3,
	NVML_GPU_INSTANCE_PROFILE_7_SLICE = 4,
	NVML_GPU_INSTANCE_PROFILE_8_SLICE = 5,
	NVML_GPU_INSTANCE_PROFILE_6_SLICE = 6,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 = 7,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 = 8,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 = 9,
	NVML_GPU_INSTANCE_PROFILE_COUNT = 18
};

/* "Not available" where a byte count stands, and "no instance" in process lists of a card without MIG. */
#define NVML_VALUE_NOT_AVAILABLE (~0ULL)
#define NVML_NO_INSTANCE 0xffffffffu

/* The version word that leads many structs: size, and the version in the top byte. */
#define NVML_STRUCT_VERSION(size, version) ((unsigned)((size) | ((unsigned)(version) << 24)))

struct nvml_device; /* nvmlDevice_t is a pointer to it */
struct nvml_event_set;
struct nvml_unit;

struct nvml_memory {
	unsigned long long total, free, used; /* used counts what the driver reserves */
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40 && offsetof(struct nvml_memory_v2, total) == 8 &&
		       offsetof(struct nvml_memory_v2, used) == 32,
	       "nvmlMemory_v2_t");
#define NVML_MEMORY_V2 0x02000028u

struct nvml_bar1_memory {
	unsigned long long total, free, used;
};
_Static_assert(sizeof(struct nvml_bar1_memory) == 24, "nvmlBAR1Memory_t");

struct nvml_pci_info {
	char bus_id_legacy[NVML_PCI_BUS_ID_V2_BYTES]; /* "0000:3B:00.0" */
	unsigned domain, bus, device;
	unsigned pci_device_id, pci_subsystem_id; /* device << 16 | vendor */
	char bus_id[NVML_PCI_BUS_ID_BYTES];       /* "00000000:3B:00.0" */
};
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");

struct nvml_process_info_v1 {
	unsigned pid;
	unsigned long long used;
};
_Static_assert(sizeof(struct nvml_process_info_v1) == 16, "nvmlProcessInfo_v1_t");

/* v2 and v3 have the same layout. */
struct nvml_process_info {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process_info) == 24, "nvmlProcessInfo_v2_t");

struct nvml_process_detail {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
	unsigned long long used_protected;
};
_Static_assert(sizeof(struct nvml_process_detail) == 32, "nvmlProcessDetail_v1_t");

enum nvml_process_mode {
	NVML_PROCESS_MODE_COMPUTE,
	NVML_PROCESS_MODE_GRAPHICS,
	NVML_PROCESS_MODE_MPS,
	NVML_PROCESS_MODE_ALL, /* since 13 */
};
struct nvml_process_detail_list {
	unsigned version, mode;
	unsigned count; /* in: room; out: entries */
	struct nvml_process_detail *processes;
};
_Static_assert(sizeof(struct nvml_process_detail_list) == 24, "nvmlProcessDetailList_v1_t");
#define NVML_PROCESS_DETAIL_LIST_V1 0x01000018u

struct nvml_process_utilization {
	unsigned pid;
	unsigned long long timestamp_us;       /* since 1970 */
	unsigned sm, memory, encoder, decoder; /* percent */
};
_Static_assert(sizeof(struct nvml_process_utilization) == 32 && offsetof(struct nvml_process_utilization, sm) == 16 &&
		       offsetof(struct nvml_process_utilization, decoder) == 28,
	       "nvmlProcessUtilizationSample_t");

struct nvml_process_utilization_info {
	unsigned long long timestamp_us;
	unsigned pid;
	unsigned sm, memory, encoder, decoder, jpeg, ofa;
};
_Static_assert(sizeof(struct nvml_process_utilization_info) == 40, "nvmlProcessUtilizationInfo_v1_t");
struct nvml_processes_utilization_info {
	unsigned version;
	unsigned count; /* in: room; out: entries */
	unsigned long long last_seen_us;
	struct nvml_process_utilization_info *processes;
};
_Static_assert(sizeof(struct nvml_processes_utilization_info) == 24, "nvmlProcessesUtilizationInfo_v1_t");
#define NVML_PROCESSES_UTILIZATION_INFO_V1 0x01000018u

/* Times in ms and, of the start, us since 1970. */
struct nvml_accounting_stats {
	unsigned gpu_percent, memory_percent;
	unsigned long long max_memory_bytes, time_ms, started_us;
	unsigned is_running;
	unsigned reserved[5];
};
struct nvml_accounting_stats_v2 {
	unsigned pid; /* in */
	unsigned is_running, gpu_percent, memory_percent;
	unsigned long long max_memory_bytes;
	unsigned samples;
	unsigned long long gpu_percent_sum, memory_percent_sum, time_ms, started_us;
};
_Static_assert(sizeof(struct nvml_accounting_stats) == 56, "nvmlAccountingStats_t");
_Static_assert(sizeof(struct nvml_accounting_stats_v2) == 64 &&
		       offsetof(struct nvml_accounting_stats_v2, max_memory_bytes) == 16 &&
		       offsetof(struct nvml_accounting_stats_v2, gpu_percent_sum) == 32,
	       "nvmlAccountingStats_v2_t");

struct nvml_encoder_session {
	unsigned session, pid, vgpu;
	unsigned codec, width, height, fps, latency_us;
};
struct nvml_fbc_session {
	unsigned session, pid, vgpu;
	unsigned display, type, flags, max_width, max_height, width, height, fps, latency_us;
};
_Static_assert(sizeof(struct nvml_encoder_session) == 32, "nvmlEncoderSessionInfo_t");
_Static_assert(sizeof(struct nvml_fbc_session) == 48, "nvmlFBCSessionInfo_t");

struct nvml_utilization {
	unsigned gpu, memory; /* percent of the last sample period */
};
_Static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");

union nvml_value {
	double d;
	unsigned ui;
	unsigned long ul;
	unsigned long long ull;
	long long sll;
	int si;
	unsigned short us;
};
_Static_assert(sizeof(union nvml_value) == 8, "nvmlValue_t");

struct nvml_sample {
	unsigned long long timestamp_us;
	union nvml_value value;
};
_Static_assert(sizeof(struct nvml_sample) == 16, "nvmlSample_t");

struct nvml_field_value {
	unsigned field, scope;
	long long timestamp_us, latency_us;
	unsigned value_type; /* enum nvml_value_type */
	int result;          /* of this field alone */
	union nvml_value value;
};
_Static_assert(sizeof(struct nvml_field_value) == 40 && offsetof(struct nvml_field_value, value) == 32,
	       "nvmlFieldValue_t");

struct nvml_event_data {
	struct nvml_device *device;
	unsigned long long type, data; /* data of an XID event: its number */
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_event_data) == 32, "nvmlEventData_t");

struct nvml_gpu_instance_profile {
	unsigned id; /* the driver's */
	unsigned p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
	unsigned long long memory_mib;
};
_Static_assert(sizeof(struct nvml_gpu_instance_profile) == 48, "nvmlGpuInstanceProfileInfo_t");

struct nvml_gpu_instance_profile_v2 {
	unsigned version;
	unsigned id;
	unsigned p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
	unsigned long long memory_mib;
	char name[NVML_NAME_V2_BYTES];
};
_Static_assert(sizeof(struct nvml_gpu_instance_profile_v2) == 152, "nvmlGpuInstanceProfileInfo_v2_t");
#define NVML_GPU_INSTANCE_PROFILE_V2 0x02000098u

/* ---- Calls. Unversioned names keep the meaning that old binaries have compiled in. */
int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);

int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlSystemGetNVMLVersion(char *version, unsigned length);
int nvmlSystemGetCudaDriverVersion(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);

int nvmlDeviceGetCount(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device);
int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device);
int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device);

int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned length);
int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned length);
int nvmlDeviceGetSerial(struct nvml_device *device, char *serial, unsigned length);
int nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *version, unsigned length);
int nvmlDeviceGetIndex(struct nvml_device *device, unsigned *index);
int nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned *minor);
int nvmlDeviceGetBrand(struct nvml_device *device, unsigned *brand);
int nvmlDeviceGetArchitecture(struct nvml_device *device, unsigned *architecture);
int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor);
int nvmlDeviceGetNumGpuCores(struct nvml_device *device, unsigned *cores);
int nvmlDeviceGetMemoryBusWidth(struct nvml_device *device, unsigned *bits);
int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info *pci);
int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info *pci);
int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci);
int nvmlDeviceGetBusType(struct nvml_device *device, unsigned *type);
int nvmlDeviceGetMaxPcieLinkGeneration(struct nvml_device *device, unsigned *generation);
int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *device, unsigned *width);
int nvmlDeviceGetCurrPcieLinkGeneration(struct nvml_device *device, unsigned *generation);
int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *device, unsigned *width);

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory);
int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory);

int nvmlDeviceGetNumaNodeId(struct nvml_device *device, unsigned *node);
int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned words, unsigned long *nodes, unsigned scope);
int nvmlDeviceGetCpuAffinity(struct nvml_device *device, unsigned words, unsigned long *cpus);
int nvmlDeviceGetCpuAffinityWithinScope(struct nvml_device *device, unsigned words, unsigned long *cpus,
					unsigned scope);

int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, unsigned *level);
int nvmlDeviceGetTopologyNearestGpus(struct nvml_device *device, unsigned level, unsigned *count,
				     struct nvml_device **devices);
int nvmlDeviceOnSameBoard(struct nvml_device *a, struct nvml_device *b, int *same);
int nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, unsigned index, unsigned *status);
int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link, unsigned *active);
int nvmlDeviceGetNvLinkVersion(struct nvml_device *device, unsigned link, unsigned *version);
int nvmlDeviceGetNvLinkCapability(struct nvml_device *device, unsigned link, unsigned capability, unsigned *result);
int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, unsigned link, unsigned *type);
int nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci);

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned *count);
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **mig);
int nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, unsigned *is);
int nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, unsigned profile,
					struct nvml_gpu_instance_profile *info);
int nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, unsigned profile,
					 struct nvml_gpu_instance_profile_v2 *info);

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization);
int nvmlDeviceGetSamples(struct nvml_device *device, unsigned type, unsigned long long last_seen_us,
			 unsigned *value_type, unsigned *count, struct nvml_sample *samples);
int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
				    unsigned *count, unsigned long long last_seen_us);
int nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device, struct nvml_processes_utilization_info *info);
int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *count, struct nvml_process_info_v1 *out);
int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count, struct nvml_process_info *out);
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count, struct nvml_process_info *out);
int nvmlDeviceGetGraphicsRunningProcesses(struct nvml_device *device, unsigned *count,
					  struct nvml_process_info_v1 *out);
int nvmlDeviceGetGraphicsRunningProcesses_v2(struct nvml_device *device, unsigned *count,
					     struct nvml_process_info *out);
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, unsigned *count,
					     struct nvml_process_info *out);
int nvmlDeviceGetMPSComputeRunningProcesses(struct nvml_device *device, unsigned *count,
					    struct nvml_process_info_v1 *out);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count,
					       struct nvml_process_info *out);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
					       struct nvml_process_info *out);
int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_detail_list *list);

int nvmlDeviceGetAccountingMode(struct nvml_device *device, unsigned *mode);
int nvmlDeviceGetAccountingBufferSize(struct nvml_device *device, unsigned *processes);
int nvmlDeviceGetAccountingPids(struct nvml_device *device, unsigned *count, unsigned *pids);
int nvmlDeviceGetAccountingStats(struct nvml_device *device, unsigned pid, struct nvml_accounting_stats *stats);
int nvmlDeviceGetAccountingStats_v2(struct nvml_device *device, struct nvml_accounting_stats_v2 *stats);
int nvmlDeviceGetEncoderSessions(struct nvml_device *device, unsigned *count, struct nvml_encoder_session *out);
int nvmlDeviceGetFBCSessions(struct nvml_device *device, unsigned *count, struct nvml_fbc_session *out);

int nvmlDeviceGetTemperature(struct nvml_device *device, unsigned sensor, unsigned *celsius);
int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, unsigned threshold, unsigned *celsius);
int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned *milliwatts);
int nvmlDeviceGetPowerManagementMode(struct nvml_device *device, unsigned *mode);
int nvmlDeviceGetPowerManagementLimit(struct nvml_device *device, unsigned *milliwatts);
int nvmlDeviceGetPowerManagementDefaultLimit(struct nvml_device *device, unsigned *milliwatts);
int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned *min, unsigned *max);
int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, unsigned *milliwatts);
int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *millijoules);
int nvmlDeviceGetClockInfo(struct nvml_device *device, unsigned clock, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, unsigned clock, unsigned *mhz);
int nvmlDeviceGetApplicationsClock(struct nvml_device *device, unsigned clock, unsigned *mhz);
int nvmlDeviceGetPerformanceState(struct nvml_device *device, unsigned *state);
int nvmlDeviceGetEccMode(struct nvml_device *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetRemappedRows(struct nvml_device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
			      unsigned *failed);
int nvmlDeviceGetRetiredPagesPendingStatus(struct nvml_device *device, unsigned *pending);
int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned type, unsigned counter, unsigned long long *count);
int nvmlDeviceGetPersistenceMode(struct nvml_device *device, unsigned *mode);
int nvmlDeviceGetComputeMode(struct nvml_device *device, unsigned *mode);
int nvmlDeviceGetDisplayActive(struct nvml_device *device, unsigned *active);
int nvmlDeviceGetDisplayMode(struct nvml_device *device, unsigned *mode);
int nvmlDeviceGetVirtualizationMode(struct nvml_device *device, unsigned *mode);
int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, unsigned *percent, unsigned *period_us);
int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, unsigned *percent, unsigned *period_us);
int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *values);

int nvmlEventSetCreate(struct nvml_event_set **set);
int nvmlEventSetFree(struct nvml_event_set *set);
int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, unsigned timeout_ms);
int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned timeout_ms);
int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set);
int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *types);

#endif
