# Toolchain: aarch64 from x86-64 by Debian's cross compiler; programs run under qemu. tools/setup guests installs both,
# and puts cmocka for arm64 into its cache.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)

execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/cache-dir OUTPUT_VARIABLE HM_AARCH64_ROOT
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(APPEND HM_AARCH64_ROOT /aarch64)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HM_AARCH64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${HM_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
