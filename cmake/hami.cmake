# The few functions that every folder's CMakeLists.txt uses.
option(HM_WERROR "warnings are errors" OFF)
option(HM_SANITIZE "address and undefined-behaviour sanitizers" OFF)
option(HM_FUZZ "libFuzzer targets (clang)" OFF)
option(HM_COVERAGE "gcov counters" OFF)
option(HM_MUTATE "libvgpu's hooks can be switched off one by one: for tools/mutate-hooks, never to be installed" OFF)
option(HM_GUEST_ONLY "only what runs inside containers (cmake/guest.cmake)" OFF)

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Wvla -Wstrict-prototypes -Wno-missing-field-initializers
  -fno-omit-frame-pointer)
add_compile_definitions(_GNU_SOURCE)
if(HM_WERROR)
  add_compile_options(-Werror)
endif()
if(HM_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_compile_definitions(HM_SANITIZED=1)
endif()
if(HM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(HM_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic) # several threads count
  add_link_options(--coverage)
endif()

# hm_library(NAME SOURCES...): a static library of one folder of src/ (or sim/), included as "<folder>/<header>.h".
function(hm_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
endfunction()

# hm_program(NAME LIBS lib... SOURCES file...): an executable in bin/, which knows HM_VERSION.
function(hm_program name)
  cmake_parse_arguments(P "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${P_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${P_LIBS})
  target_compile_definitions(${name} PRIVATE HM_VERSION="${PROJECT_VERSION}")
endfunction()

# hm_unit_test(NAME LIBS lib... SOURCES file...): a cmocka program and its ctest. tests/harness is linked in. A program
# that exits with 77 was skipped; its last line says why.
function(hm_unit_test name)
  cmake_parse_arguments(P "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${P_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE harness ${P_LIBS} PkgConfig::cmocka)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 120 SKIP_RETURN_CODE 77)
endfunction()
