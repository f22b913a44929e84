# Settings of one generator: the tarball takes its libraries with it, the Debian package depends on those of Debian.
set(CPACK_PRE_BUILD_SCRIPTS ${CPACK_AON_PLACE_UNIT})
if(CPACK_GENERATOR STREQUAL "TGZ")
  list(APPEND CPACK_PRE_BUILD_SCRIPTS ${CPACK_AON_BUNDLE})
  set(CPACK_AON_PREFIX /opt/aon) # share/aon/systemd/install for other places
else()
  set(CPACK_AON_PREFIX /usr)
endif()
