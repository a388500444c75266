#define CUDA_VERSION 13000
typedef enum { CUDA_SUCCESS } CUresult;
typedef struct CUseeded_st {
	int first, second;
	unsigned short third;
} CUseeded;
enum { CU_SEEDED_VALUE = 4 };
CUresult cuSeededCall(unsigned long bytes);
CUresult cuSeededStruct(CUseeded *seeded);
