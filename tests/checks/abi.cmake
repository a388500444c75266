# Our declarations of the CUDA driver and NVML against NVIDIA's own, which are fetched once; and hooks.def against the
# symbol map, which the build itself holds to.
hm_check(abi ${PY} ${TOOLS}/check_abi.py --cc ${CMAKE_C_COMPILER})
set_tests_properties(check_abi PROPERTIES SKIP_RETURN_CODE 77)
hm_check_negative(abi 1
  "cuSeededStruct: parameter 1: CUseeded_st.second: at 0, not 4"
  "cuSeededCall: parameter 1: int, not long unsigned int"
  "CU_SEEDED_VALUE is 3, not 4"
  "cuda_symbols.txt: cuSeededStruct: no PFN_cuSeededStruct_v2010"
  "cuda_symbols.txt: nothing for PFN_cuSeededStruct_v2000"
  "cuSeededGone: no version of NVIDIA's headers has it"
  -- ${PY} ${TOOLS}/check_abi.py --cc ${CMAKE_C_COMPILER} --abi ${BAD_TREE}/abi ${BAD_TREE}/nvidia)
hm_check_negative(hooks 1 "hooks.def and the symbol map differ: ['cuSeededStruct']"
  -- ${PY} ${CMAKE_SOURCE_DIR}/src/vgpu/gen_hooks.py ${BAD_TREE}/abi/hooks.def ${BAD_TREE}/abi/cuda_symbols.txt
  ${CMAKE_BINARY_DIR}/tests/bad_hooks)
hm_check_negative(unhooked 1 "unhooked.def:1: cuSeededCall is hooked and passes, or neither"
  -- ${PY} ${CMAKE_SOURCE_DIR}/src/vgpu/gen_hooks.py ${BAD_TREE}/abi/unhooked.def ${BAD_TREE}/abi/cuda_symbols.txt
  ${CMAKE_BINARY_DIR}/tests/bad_hooks)
