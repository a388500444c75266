typedef CUresult (*PFN_cuSeededCall_v2000)(unsigned long bytes);
typedef CUresult (*PFN_cuSeededStruct_v2000)(CUseeded *seeded);
