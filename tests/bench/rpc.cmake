hm_program(rpc_empty_server SOURCES rpc_empty_server.c LIBS rpc io base core)
set_target_properties(rpc_empty_server PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
