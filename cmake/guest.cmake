# What runs inside containers, and nothing else: libvgpu with its tests, and the simulated drivers that they need. For an
# architecture for which we have no library but libc (HM_GUEST_ONLY; preset aarch64).
foreach(folder src/contract src/abi src/core src/base src/region src/vgpu sim/lib sim/nvml sim/cuda tests/probe)
  add_subdirectory(${folder})
endforeach()
enable_testing()
foreach(folder harness unit/core unit/base unit/region unit/vgpu)
  add_subdirectory(tests/${folder})
endforeach()
add_test(NAME check_symbols COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_symbols.py $<TARGET_FILE:vgpu>)
