#include "agent/container/library.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "core/cleanup.h"
#include "core/fmt.h"
#include "io/file.h"

enum { LIBRARY_MAX_BYTES = 64 * 1024 * 1024, DIGEST_BYTES_NAMED = 8 };

static const char prefix[] = "libvgpu.so.";

static void digest_name(const struct str *bytes, char out[2 * DIGEST_BYTES_NAMED + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)str_text(bytes), bytes->n, digest);
	for (size_t i = 0; i < DIGEST_BYTES_NAMED; i++)
		hm_fmt(out + 2 * i, 3, "%02x", digest[i]);
}

/* The rename makes the name appear whole; a file of another length was damaged later. */
static bool is_there(const char *path, size_t bytes)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size == bytes;
}

int library_install(const char *source, const char *folder, char *out, size_t cap, struct hm_err *e)
{
	hm_auto_str bytes = { 0 };
	char name[2 * DIGEST_BYTES_NAMED + 1];

	if (file_read(source, LIBRARY_MAX_BYTES, &bytes, e) < 0 || file_mkdirs(folder, 0755, e) < 0)
		return hm_err_wrap(e, "install libvgpu");
	if (bytes.n < 4 || memcmp(bytes.p, "\177ELF", 4) != 0)
		return hm_err_set(e, HM_EINVAL, "install libvgpu: %s is no shared library", source);
	digest_name(&bytes, name);
	if (hm_fmt(out, cap, "%s/%s%s", folder, prefix, name) >= cap)
		return hm_err_set(e, HM_EINVAL, "install libvgpu: the path is too long: %s", folder);
	if (is_there(out, bytes.n))
		return 0;
	if (file_replace(out, bytes.p, bytes.n, 0755, e) < 0)
		return hm_err_wrap(e, "install libvgpu");
	log_info("installed libvgpu", KV("path", out), KV_U64("bytes", bytes.n));
	return 0;
}

void library_remove_unused(const char *folder, const char *current, bool (*in_use)(const char *path, void *arg),
			   void *arg)
{
	DIR *dir = opendir(folder);
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		char path[1024];

		if (strncmp(d->d_name, prefix, sizeof prefix - 1) != 0 ||
		    hm_fmt(path, sizeof path, "%s/%s", folder, d->d_name) >= sizeof path ||
		    strcmp(path, current) == 0 || in_use(path, arg))
			continue;
		if (unlink(path) < 0)
			log_warn("cannot remove an unused libvgpu", KV("path", path), KV("err", hm_errno_text(errno)));
		else
			log_info("removed an unused libvgpu", KV("path", path));
	}
	if (dir != NULL)
		closedir(dir);
}

int library_default_source(char *out, size_t cap, struct hm_err *e)
{
	static const char *const places[] = { "lib/hami-vgpu/libvgpu.so", "lib/libvgpu.so" }; /* installed; built */
	char exe[1024];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *slash;

	if (n < 0)
		return hm_err_errno(e, errno, "find this program's folder");
	exe[n] = '\0';
	for (int up = 0; up < 2; up++)
		if ((slash = strrchr(exe, '/')) != NULL)
			*slash = '\0';
	for (size_t i = 0; i < HM_COUNT(places); i++) {
		if (hm_fmt(out, cap, "%s/%s", exe, places[i]) >= cap)
			return hm_err_set(e, HM_EINVAL, "find libvgpu.so: the path is too long; use --libvgpu");
		if (access(out, R_OK) == 0)
			break;
	}
	return 0;
}
