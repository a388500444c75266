hm_program(spawn_bench LIBS core SOURCES spawn_bench.c)
set_target_properties(spawn_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
