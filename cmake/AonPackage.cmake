# What is installed beside programs and libraries, and the packages: `cpack` in the binary folder makes a Debian package
# and a tarball that runs wherever it is unpacked. Included last: it names targets of all folders.
set(packaging ${PROJECT_SOURCE_DIR}/packaging)

# An RPATH, unlike a RUNPATH, also counts for what the libraries and the providers of a program need themselves.
foreach(program aon-agent aon-node aon-tool)
  if(TARGET ${program})
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
    set_property(TARGET ${program} PROPERTY INSTALL_RPATH "$ORIGIN/../lib;$ORIGIN/../lib/aon/private")
  endif()
endforeach()

if(NOT AON_SANITIZE AND TARGET aon-tool)
  set(documents ${PROJECT_BINARY_DIR}/share)
  add_custom_command(
    OUTPUT ${documents}/man/man1/aon-run.1
    COMMAND /usr/bin/python3 -B ${packaging}/documents.py $<TARGET_FILE:aon-run> $<TARGET_FILE:aon-tool> $<TARGET_FILE:aon-node>
            ${PROJECT_VERSION} ${documents}
    DEPENDS ${packaging}/documents.py aon-run aon-tool aon-node VERBATIM)
  add_custom_target(aon_documents ALL DEPENDS ${documents}/man/man1/aon-run.1)
  install(DIRECTORY ${documents}/man ${documents}/bash-completion DESTINATION share)
endif()

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/aon-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${packaging}/aon-config.cmake ${PROJECT_BINARY_DIR}/aon-config-version.cmake DESTINATION lib/cmake/aon)
# The unit names the program by its full path, which is known when it is installed.
install(CODE "configure_file(\"${packaging}/systemd/aon-node.service.in\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/aon/systemd/aon-node.service\" @ONLY)")
install(PROGRAMS ${packaging}/systemd/install DESTINATION share/aon/systemd)
install(FILES ${packaging}/modulefile DESTINATION share/modulefiles/aon RENAME ${PROJECT_VERSION})

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # cpack takes what is built, tests need not be
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_NAME aon)
set(CPACK_PACKAGE_VENDOR "AON")
set(CPACK_PACKAGE_CONTACT "AON <aon@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "always-on profiler for MPI and GPU programs")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME aon-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${packaging}/cpack_project.cmake)
set(CPACK_AON_PLACE_UNIT ${packaging}/place_unit.cmake)
set(CPACK_AON_BUNDLE ${packaging}/bundle_libraries.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3")
include(CPack)
