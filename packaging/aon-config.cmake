# CMake package of AON, for programs that annotate themselves and for providers:
#
#   find_package(aon REQUIRED)
#   target_link_libraries(my_program PRIVATE aon::annotate)    # <aon/annotate.h>, links nothing of ours
#   target_link_libraries(my_provider PRIVATE aon::provider)   # <aon/provider.h>, the plugin ABI
#
# Finds everything from where this file lies, so the tree may be moved.
get_filename_component(AON_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(AON_PROVIDER_FOLDER "${AON_PREFIX}/lib/aon/providers")
foreach(part annotate provider)
  if(NOT TARGET aon::${part})
    add_library(aon::${part} INTERFACE IMPORTED)
    set_target_properties(aon::${part} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${AON_PREFIX}/include")
  endif()
endforeach()
set_property(TARGET aon::annotate PROPERTY INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
