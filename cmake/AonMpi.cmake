# The MPI libraries that tests and examples are built with: Open MPI by the default compiler, MPICH beside it.
# AON_MPI_LIBRARIES names those that are here. Each has a target aon_mpi_NAME, a compiler AON_MPI_COMPILER_NAME, and
# AON_MPI_SUFFIX_NAME for targets and test names: empty for Open MPI. AON_MPI_HAS_SESSIONS_NAME: it has what MPI-4 adds;
# Open MPI from version 5 on, which calls itself 3.1.
#
# aon_mpi_test(name LIBRARY COMMAND ...): aon_script_test with AON_TEST_MPI=LIBRARY in the environment (aon_test.py); the
# test of a library that is not here is skipped, and counted as skipped.
include_guard()
include(CheckSymbolExists)
find_package(MPI COMPONENTS C QUIET)
find_package(PkgConfig QUIET)

set(AON_MPI_LIBRARIES "")
set(AON_MPI_SUFFIX_openmpi "")
set(AON_MPI_SUFFIX_mpich _mpich)
if(MPI_C_FOUND AND NOT TARGET aon_mpi_openmpi)
  add_library(aon_mpi_openmpi INTERFACE)
  target_link_libraries(aon_mpi_openmpi INTERFACE MPI::MPI_C)
  set(AON_MPI_COMPILER_openmpi ${MPI_C_COMPILER})
endif()
if(MPI_C_FOUND)
  list(APPEND AON_MPI_LIBRARIES openmpi)
else()
  message(STATUS "no default MPI compiler: its tests are skipped")
endif()

if(PkgConfig_FOUND)
  pkg_check_modules(AON_MPICH QUIET IMPORTED_TARGET mpich)
endif()
find_program(AON_MPI_COMPILER_mpich mpicc.mpich)
find_program(AON_MPI_HYDRA mpiexec.hydra)
if(AON_MPICH_FOUND AND AON_MPI_COMPILER_mpich AND AON_MPI_HYDRA)
  if(NOT TARGET aon_mpi_mpich)
    add_library(aon_mpi_mpich INTERFACE)
    target_link_libraries(aon_mpi_mpich INTERFACE PkgConfig::AON_MPICH)
    # Its MPI_STATUSES_IGNORE is the address 1, which g++ takes for an array that is too small.
    target_compile_options(aon_mpi_mpich INTERFACE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  endif()
  list(APPEND AON_MPI_LIBRARIES mpich)
else()
  message(STATUS "no MPICH (mpich.pc, mpicc.mpich and mpiexec.hydra of packages libmpich-dev, mpich): its tests are skipped")
endif()

foreach(library ${AON_MPI_LIBRARIES})
  get_target_property(CMAKE_REQUIRED_LIBRARIES aon_mpi_${library} INTERFACE_LINK_LIBRARIES)
  check_symbol_exists(MPI_Session_init mpi.h AON_MPI_HAS_SESSIONS_${library})
  unset(CMAKE_REQUIRED_LIBRARIES)
endforeach()

function(aon_mpi_test name library)
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  set(command ${CMAKE_COMMAND} -E env AON_TEST_MPI=${library} ${arg_COMMAND})
  if(NOT library IN_LIST AON_MPI_LIBRARIES)
    set(command sh -c "echo ${library} is not installed && exit 77")
  endif()
  aon_script_test(${name} LABELS "${arg_LABELS}" TIMEOUT "${arg_TIMEOUT}" COMMAND ${command})
endfunction()
