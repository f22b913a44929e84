! Sessions, beside MPI_Init, and what is made from them. MPI-4.
#include "every.inc"
#ifndef HAS_MPI_4
subroutine sessions(me, other)
  integer :: me, other
end subroutine
#else
subroutine sessions(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, count, length, errors
  common /session_errors/ errors
  character(len=256) :: name
  SESSION_HANDLE :: session
  INFO :: hints
  ERRHANDLER :: handler, found
  GROUP :: all, mine, others
  COMM :: comm
  external on_session_error

  errors = 0
#if LANGUAGE != 3
  call MPI_Info_create_env(hints ERROR)  ! MPICH 4.0's mpi_f08 does not come back from it
  call MPI_Info_free(hints ERROR)
#endif
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session ERROR)
  call MPI_Session_get_num_psets(session, MPI_INFO_NULL, count ERROR)
  CHECK(count >= 2)
  length = 256
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, FIRST_INDEX, length, name ERROR)
  CHECK(name == 'mpi://WORLD')
  call MPI_Session_get_pset_info(session, 'mpi://WORLD', hints ERROR)
  call MPI_Info_free(hints ERROR)
  call MPI_Session_get_info(session, hints ERROR)
  call MPI_Info_free(hints ERROR)
  call MPI_Session_create_errhandler(on_session_error, handler ERROR)
  call MPI_Session_set_errhandler(session, handler ERROR)
  call MPI_Session_get_errhandler(session, found ERROR)
  CHECK(found == handler)
  call MPI_Session_call_errhandler(session, MPI_ERR_OTHER ERROR)
  CHECK(errors == 1)
  call MPI_Errhandler_free(found ERROR)
  call MPI_Errhandler_free(handler ERROR)
  call MPI_Group_from_session_pset(session, 'mpi://WORLD', all ERROR)
  call MPI_Comm_create_from_group(all, 'all', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm ERROR)
  call MPI_Comm_size(comm, count ERROR)
  CHECK(count == 2)
  call MPI_Comm_free(comm ERROR)
  call MPI_Group_incl(all, 1, (/me/), mine ERROR)
  call MPI_Group_incl(all, 1, (/other/), others ERROR)
  call MPI_Intercomm_create_from_groups(mine, 0, others, 0, 'pair', MPI_INFO_NULL, &
                                        MPI_ERRORS_ARE_FATAL, comm ERROR)
  call MPI_Comm_remote_size(comm, count ERROR)
  CHECK(count == 1)
  call MPI_Comm_free(comm ERROR)
  call MPI_Group_free(others ERROR)
  call MPI_Group_free(mine ERROR)
  call MPI_Group_free(all ERROR)
  call MPI_Session_finalize(session ERROR)
end subroutine

subroutine on_session_error(session, code)
  USE_MPI
  implicit none
  INCLUDE_MPI
  SESSION_HANDLE :: session
  integer :: code, errors
  common /session_errors/ errors
  CHECK(code == MPI_ERR_OTHER)
  errors = errors + 1
end subroutine
#endif
