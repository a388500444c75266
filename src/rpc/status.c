#include "rpc/status.h"

#include "core/err.h"
#include "core/macros.h"

static const char *const names[] = {
	"OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
	"NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
	"ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
	"DATA_LOSS", "UNAUTHENTICATED",
};

static const int statuses[HM_CODE_COUNT] = {
	[HM_OK] = RPC_OK,
	[HM_ENOMEM] = RPC_RESOURCE_EXHAUSTED,
	[HM_EINVAL] = RPC_INVALID_ARGUMENT,
	[HM_EPROTO] = RPC_INTERNAL, /* as grpc-go answers bytes that are no message */
	[HM_EIO] = RPC_INTERNAL,
	[HM_ENOTFOUND] = RPC_NOT_FOUND,
	[HM_EEXIST] = RPC_ALREADY_EXISTS,
	[HM_EAGAIN] = RPC_UNAVAILABLE,
	[HM_EPERM] = RPC_PERMISSION_DENIED,
	[HM_ELIMIT] = RPC_RESOURCE_EXHAUSTED,
	[HM_ETIMEDOUT] = RPC_DEADLINE_EXCEEDED,
	[HM_EUNSUPPORTED] = RPC_UNIMPLEMENTED,
	[HM_EINTERNAL] = RPC_INTERNAL,
};

const char *rpc_status_name(int status)
{
	return status >= 0 && (size_t)status < HM_COUNT(names) ? names[status] : names[RPC_UNKNOWN];
}

int rpc_status_of(int hm_code)
{
	if (hm_code <= -HM_CODE_COUNT || hm_code >= HM_CODE_COUNT)
		return RPC_UNKNOWN;
	return statuses[hm_code < 0 ? -hm_code : hm_code];
}
