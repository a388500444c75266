# libvgpu.so: what it exports and needs.
hm_check(symbols ${PY} ${TOOLS}/check_symbols.py $<TARGET_FILE:vgpu>)
add_library(seeded_bad_vgpu SHARED ${CMAKE_CURRENT_LIST_DIR}/bad_vgpu.c)
set_target_properties(seeded_bad_vgpu PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests C_VISIBILITY_PRESET default)
target_compile_options(seeded_bad_vgpu PRIVATE -w -fno-sanitize=all)
target_link_options(seeded_bad_vgpu PRIVATE -fno-sanitize=all -Wl,--no-as-needed -lm)
hm_check_negative(symbols 1
  "cuMemFree_v2 is hooked but not exported" "mutex is exported but not hooked" "malloc may not be called"
  "puts may not be called" "pthread_detach may not be called" "pthread_detach needs GLIBC_2.34" "needs libm.so.6"
  "has INIT_ARRAY" "has thread-local storage"
  -- ${PY} ${TOOLS}/check_symbols.py $<TARGET_FILE:seeded_bad_vgpu>)
