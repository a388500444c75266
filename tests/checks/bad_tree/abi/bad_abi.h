typedef int CUresult;
typedef struct CUseeded_st {
	int second, first;
	unsigned short third;
} CUseeded;
enum { CU_SEEDED_VALUE = 3 };
CUresult cuSeededCall(int bytes);
CUresult cuSeededStruct(CUseeded *seeded);
CUresult cuSeededGone(void);
