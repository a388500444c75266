# make install: the programs in bin/, libraries in lib/hami-vgpu/ (nobody links them: they are preloaded or mounted; the
# programs look there from their own folder, so it is lib/ on every distribution), the simulation's nodes and the
# documents in share/. What is not there yet is left out.
include(GNUInstallDirs)
if(HM_MUTATE)
  install(CODE "message(FATAL_ERROR \"a build with HM_MUTATE is for tools/mutate-hooks alone\")")
endif()

set(HM_LIBDIR lib/hami-vgpu)
foreach(program hami-device-plugin hami-scheduler hami-smi hami-simd hami-simctl hami-simkubelet)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/ DESTINATION ${HM_LIBDIR} OPTIONAL FILES_MATCHING PATTERN "*.so*")
install(DIRECTORY ${CMAKE_BINARY_DIR}/sim/ DESTINATION ${HM_LIBDIR}/sim OPTIONAL FILES_MATCHING PATTERN "*.so*"
  PATTERN CMakeFiles EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/sim/nodes DESTINATION ${CMAKE_INSTALL_DATADIR}/hami-vgpu OPTIONAL
  FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
