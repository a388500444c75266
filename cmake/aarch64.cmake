# Toolchain: aarch64 from x86-64 by Debian's cross compiler; programs run under qemu. tools/setup guests installs both,
# and puts cmocka for arm64 into its cache.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)

set(HM_AARCH64_ROOT "$ENV{HAMI_CACHE}")
if(NOT HM_AARCH64_ROOT)
  set(HM_AARCH64_ROOT "$ENV{XDG_CACHE_HOME}")
  if(NOT HM_AARCH64_ROOT)
    set(HM_AARCH64_ROOT "$ENV{HOME}/.cache")
  endif()
  string(APPEND HM_AARCH64_ROOT /hami-vgpu)
endif()
string(APPEND HM_AARCH64_ROOT /aarch64)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HM_AARCH64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${HM_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
