hm_program(vgpu_bench LIBS core ${CMAKE_DL_LIBS} SOURCES vgpu_bench.c)
set_target_properties(vgpu_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_include_directories(vgpu_bench PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_BINARY_DIR}/tests/generated)
