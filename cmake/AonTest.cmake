# aon_unit_test(part SOURCES ... LIBRARIES ... [LABELS ...] [PATHS name path ...] [ALONE]): GoogleTest program; ctest names are `part.Suite.name`.
# PATHS are `extern const char* const` of a source that is generated: in compilers' options they keep objects out of other clones' cache.
# Of sanitized programs, which take long to start, all tests of a part run in one process, `part.Tests`; ALONE: each needs its own.
# aon_script_test(name COMMAND ... [LABELS ...] [TIMEOUT s]): any command; `name` begins with the part it tests.
#
# ctest schedules in halves of a core (PROCESSORS; scripts/test runs as many at a time as there are): a unit test computes and
# takes two, a script mostly waits for its programs and takes one. RUN_SERIAL is for what weighs times: beside no other test.
enable_testing()
find_package(GTest REQUIRED)
include(GoogleTest)

function(aon_unit_test part)
  cmake_parse_arguments(arg "ALONE" "" "SOURCES;LIBRARIES;LABELS;PATHS" ${ARGN})
  string(REPLACE "." "_" target test_${part})
  set(paths "")
  if(arg_PATHS)
    set(paths ${CMAKE_CURRENT_BINARY_DIR}/${target}_paths.cpp)
    set(text "")
    while(arg_PATHS)
      list(POP_FRONT arg_PATHS name path)
      string(APPEND text "extern const char* const ${name};\nconst char* const ${name} = \"${path}\";\n")
    endwhile()
    file(GENERATE OUTPUT ${paths} CONTENT "${text}")
  endif()
  add_executable(${target} ${arg_SOURCES} ${paths})
  aon_skip_ubsan(${arg_SOURCES})
  target_compile_options(${target} PRIVATE -O1 -g1)  # compiles in two thirds of the time of -O2 -g
  target_link_libraries(${target} PRIVATE aon_settings ${arg_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  if(AON_MOLD)
    target_link_options(${target} PRIVATE -fuse-ld=mold)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(AON_SANITIZE AND NOT arg_ALONE)
    add_test(NAME ${part}.Tests COMMAND ${target})
    set_tests_properties(${part}.Tests PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600 PROCESSORS 2)
  else()
    gtest_discover_tests(${target} TEST_PREFIX "${part}." DISCOVERY_MODE PRE_TEST
                         PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 120 PROCESSORS 2)
  endif()
endfunction()

# Ranks of Open MPI that wait leave their core to other tests: those of MPI take a fifth less time. It loads no parts for
# networks, and no shared memory for what it knows of the job: a start takes a quarter less. Benches do not run so.
set(aon_open_mpi "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_mpi_yield_when_idle=1")
string(APPEND aon_open_mpi ";OMPI_MCA_pml=ob1;OMPI_MCA_btl=self,vader,tcp;PMIX_MCA_gds=hash")
function(aon_script_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
                       ENVIRONMENT "AON_BUILD=${PROJECT_BINARY_DIR};AON_SOURCE=${PROJECT_SOURCE_DIR};${aon_open_mpi}")
endfunction()
