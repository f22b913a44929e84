# Copies the libraries that AON's programs and providers need into lib/aon/private of the staged tree, where their RPATH
# finds them: a tarball may then be unpacked on a machine that has none of them. Not those of the C library, which must
# be the machine's own. Run by CPack when the tree is staged.
set(prefix ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
file(GLOB_RECURSE providers ${prefix}/lib/aon/providers/*.so)
file(GET_RUNTIME_DEPENDENCIES
     EXECUTABLES ${prefix}/bin/aon ${prefix}/bin/aon-agent ${prefix}/bin/aon-node
     MODULES ${providers}
     RESOLVED_DEPENDENCIES_VAR found
     UNRESOLVED_DEPENDENCIES_VAR missing
     PRE_EXCLUDE_REGEXES "^ld-linux" "^libaon" "^lib(c|m|dl|rt|pthread|resolv|util|nsl|anl)\\.so")
if(missing)
  message(FATAL_ERROR "cannot find ${missing}")
endif()
foreach(library ${found})
  file(INSTALL ${library} DESTINATION ${prefix}/lib/aon/private TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
endforeach()
list(LENGTH found count)
message(STATUS "${count} libraries travel with the tarball")
