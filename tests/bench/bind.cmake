hm_program(bind_bench SOURCES bind_bench.c LIBS io base core PkgConfig::curl)
set_target_properties(bind_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
