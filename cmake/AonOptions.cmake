# Compiler settings that every target gets, and the two kinds of targets: `aon_application_code` runs inside the profiled
# program (no exceptions, no RTTI, no libstdc++, initial-exec TLS), everything else is ordinary C++20.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# Backtraces keep their lines. Local variables take a fifth of the time to compile, and make the installed tree five times as
# large; the preset debug has them.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
# The build tree is laid out as the installed one. CMake would fill up what it later replaces with colons, and for the
# loader an empty word of a path is the working directory.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

set(AON_SANITIZE "" CACHE STRING "sanitizers of agent, writers and tools, e.g. address,undefined")
option(AON_WARNINGS_AS_ERRORS "stop at warnings" ON)

find_program(AON_CCACHE ccache)
if(AON_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${AON_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${AON_CCACHE})
endif()

# Links 150 MB in a tenth of ld's time: tests, and what is sanitized, of which nothing is installed.
find_program(AON_MOLD mold)
mark_as_advanced(AON_MOLD)

add_library(aon_settings INTERFACE)
target_include_directories(aon_settings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/core/include)
target_compile_options(aon_settings INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith
                       $<$<BOOL:${AON_WARNINGS_AS_ERRORS}>:-Werror>)
target_compile_definitions(aon_settings INTERFACE _GNU_SOURCE AON_VERSION="${PROJECT_VERSION}")
if(AON_SANITIZE)
  # -O1 -g1: half the time to compile, and traces still have lines. Not for application code, whose objects are then the
  # same in every preset: ccache compiles them once.
  target_compile_options(aon_settings INTERFACE -fsanitize=${AON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
                         -O1 -g1)
  target_link_options(aon_settings INTERFACE -fsanitize=${AON_SANITIZE} $<$<BOOL:${AON_MOLD}>:-fuse-ld=mold>)
  # A million relocations of what describes globals to it were a third of the time that each start takes.
  if(AON_SANITIZE MATCHES "address")
    target_link_options(aon_settings INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()

# aon_skip_ubsan(files...): sources that are mostly headers of other projects. Checks for undefined behaviour double the
# time they take to compile and find nothing of ours; the address sanitizer stays.
function(aon_skip_ubsan)
  if("${AON_SANITIZE}" MATCHES "undefined")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()
endfunction()

# Settings of code that lives in the application's process. It is never sanitized: it is preloaded into foreign programs.
# With unwind tables: a stack that a debugger, a handler or we ourselves take inside a call goes through the wrapper.
# Without SLP vectorization: it gathers the fields of a record through vector registers, which costs 2 ns a call.
add_library(aon_application_code INTERFACE)
target_include_directories(aon_application_code INTERFACE ${PROJECT_SOURCE_DIR}/core/include)
# Before each source: a call of what nobody thought of has an old version as well. musl has none of what fortified code calls.
target_compile_options(aon_application_code INTERFACE "SHELL:-include \"${PROJECT_SOURCE_DIR}/core/include/aon/old_libc.h\"")
target_compile_options(aon_application_code INTERFACE -Wall -Wextra -Wshadow $<$<BOOL:${AON_WARNINGS_AS_ERRORS}>:-Werror>
                       -O2 -fno-tree-slp-vectorize -fno-exceptions -fno-rtti -fno-threadsafe-statics -ftls-model=initial-exec -fvisibility=hidden
                       -fasynchronous-unwind-tables -fno-stack-protector -U_FORTIFY_SOURCE)
target_compile_definitions(aon_application_code INTERFACE _GNU_SOURCE AON_VERSION="${PROJECT_VERSION}")
target_link_options(aon_application_code INTERFACE -nodefaultlibs -Wl,-z,nodelete -Wl,-z,now -Wl,--no-undefined)
target_link_libraries(aon_application_code INTERFACE c gcc)
