hm_program(place_bench LIBS model SOURCES place_bench.c)
set_target_properties(place_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
hm_program(topology_bench LIBS model SOURCES topology_bench.c)
set_target_properties(topology_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
