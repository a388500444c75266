/* gRPC status codes; numbers and names are the protocol's. */
#ifndef HM_RPC_STATUS_H
#define HM_RPC_STATUS_H

enum rpc_status {
	RPC_OK = 0,
	RPC_CANCELLED = 1,
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5,
	RPC_ALREADY_EXISTS = 6,
	RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_FAILED_PRECONDITION = 9,
	RPC_ABORTED = 10,
	RPC_OUT_OF_RANGE = 11,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
	RPC_DATA_LOSS = 15,
	RPC_UNAUTHENTICATED = 16
};

const char *rpc_status_name(int status); /* "UNAVAILABLE"; "UNKNOWN" for numbers outside */
int rpc_status_of(int hm_code);          /* enum hm_code (either sign) to the status a caller should see */

#endif
