# Settings of one generator: the tarball takes its libraries with it, the Debian package depends on those of Debian.
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_PRE_BUILD_SCRIPTS ${CPACK_AON_BUNDLE})
endif()
