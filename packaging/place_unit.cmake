# The unit of the node's service names the program by its full path. While CPack stages the tree that is a folder of the
# build; in the package it is where the package puts it. Run by CPack when the tree is staged.
file(GLOB_RECURSE units ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/aon-node.service)
if(NOT units)
  message(FATAL_ERROR "no aon-node.service below ${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
endif()
foreach(unit ${units})
  file(READ ${unit} text)
  string(REGEX REPLACE "\nExecStart=[^\n]*" "\nExecStart=\"${CPACK_AON_PREFIX}/bin/aon-node\"" text "${text}")
  string(REGEX REPLACE "\nExecStartPre=[^\n]*" "\nExecStartPre=-+\"${CPACK_AON_PREFIX}/bin/aon-node\" --end" text "${text}")
  file(WRITE ${unit} "${text}")
endforeach()
