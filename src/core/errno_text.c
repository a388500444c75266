/* Texts of the errno values that our system calls meet. strerror() may allocate and follows the locale, so libvgpu
 * cannot use it. */
#include <errno.h>

#include "core/err.h"

const char *hm_errno_text(int errnum)
{
	switch (errnum) {
	case E2BIG: return "Argument list too long";
	case EACCES: return "Permission denied";
	case EADDRINUSE: return "Address already in use";
	case EADDRNOTAVAIL: return "Cannot assign requested address";
	case EAGAIN: return "Resource temporarily unavailable";
	case EBADF: return "Bad file descriptor";
	case EBUSY: return "Device or resource busy";
	case ECHILD: return "No child processes";
	case ECONNABORTED: return "Software caused connection abort";
	case ECONNREFUSED: return "Connection refused";
	case ECONNRESET: return "Connection reset by peer";
	case EDQUOT: return "Disk quota exceeded";
	case EEXIST: return "File exists";
	case EFAULT: return "Bad address";
	case EFBIG: return "File too large";
	case EHOSTUNREACH: return "No route to host";
	case EINTR: return "Interrupted system call";
	case EINVAL: return "Invalid argument";
	case EIO: return "Input/output error";
	case EISDIR: return "Is a directory";
	case ELOOP: return "Too many levels of symbolic links";
	case EMFILE: return "Too many open files";
	case EMLINK: return "Too many links";
	case ENAMETOOLONG: return "File name too long";
	case ENETUNREACH: return "Network is unreachable";
	case ENFILE: return "Too many open files in system";
	case ENODEV: return "No such device";
	case ENOENT: return "No such file or directory";
	case ENOEXEC: return "Exec format error";
	case ENOMEM: return "Cannot allocate memory";
	case ENOSPC: return "No space left on device";
	case ENOSYS: return "Function not implemented";
	case ENOTCONN: return "Transport endpoint is not connected";
	case ENOTDIR: return "Not a directory";
	case ENOTEMPTY: return "Directory not empty";
	case ENOTSOCK: return "Socket operation on non-socket";
	case ENXIO: return "No such device or address";
	case EOPNOTSUPP: return "Operation not supported";
	case EOVERFLOW: return "Value too large for defined data type";
	case EPERM: return "Operation not permitted";
	case EPIPE: return "Broken pipe";
	case EPROTO: return "Protocol error";
	case EROFS: return "Read-only file system";
	case ESPIPE: return "Illegal seek";
	case ESRCH: return "No such process";
	case ESTALE: return "Stale file handle";
	case ETIMEDOUT: return "Connection timed out";
	case ETXTBSY: return "Text file busy";
	case EXDEV: return "Invalid cross-device link";
	default: return "unknown errno";
	}
}
