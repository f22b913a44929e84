! Processes that find each other and that start others; where the library's network has no way to,
! each call is refused and the program goes on.
#include "every.inc"
subroutine processes(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, number, end, result, value, in
  integer :: errors(2)
  character(len=MPI_MAX_PORT_NAME) :: port, found
  character(len=200) :: program
  character(len=200) :: commands(2)
  character(len=10) :: arguments(2), argument_lists(2, 2)
  character(len=20) :: name
  COMM :: between
  INFO :: hints(2)

  call get_command_argument(0, program)
  commands = program
  arguments(1) = 'child'
  arguments(2) = ' '
  argument_lists(:, 1) = 'child'
  argument_lists(:, 2) = ' '
  hints = MPI_INFO_NULL
  call MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN ERROR)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN ERROR)
  write (name, '(a,i0)') 'aon-fortran-', me
  call MPI_Open_port(MPI_INFO_NULL, port, result)
  if (result /= MPI_SUCCESS) then
    port = 'none'
    call MPI_Publish_name(name, MPI_INFO_NULL, port ERROR)
    port = ' '
    call MPI_Lookup_name(name, MPI_INFO_NULL, port ERROR)
    CHECK(port == 'none')
    call MPI_Unpublish_name(name, MPI_INFO_NULL, port ERROR)
    call refused()
    return
  end if
  call MPI_Publish_name(name, MPI_INFO_NULL, port ERROR)
  call MPI_Barrier(W ERROR)
  if (me == 0) then
    call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, between ERROR)
  else
    call MPI_Lookup_name('aon-fortran-0', MPI_INFO_NULL, found ERROR)
    call MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, between ERROR)
  end if
  call greet_and_leave()
  call MPI_Unpublish_name(name, MPI_INFO_NULL, port ERROR)
  call MPI_Close_port(port ERROR)

  number = 0
  if (me == 0) then
    call every_listen(end, number)
    call MPI_Send(number, 1, INT, 1, 2, W ERROR)
    call every_accept(end)
  else
    call MPI_Recv(number, 1, INT, 0, 2, W, MPI_STATUS_IGNORE ERROR)
    call every_connect(end, number)
  end if
  call MPI_Comm_join(end, between ERROR)
  call greet_and_leave()

  ! By rank 0 alone: where several spawn, Open MPI 4.1 divides by zero now and then.
  if (me == 1) return
  call MPI_Comm_spawn(commands(1), arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, between, &
                      errors ERROR)
  call greet_children(1)
  call MPI_Comm_spawn_multiple(2, commands, argument_lists, (/1, 1/), hints, 0, &
                               MPI_COMM_SELF, between, MPI_ERRCODES_IGNORE ERROR)
  call greet_children(2)

contains

  subroutine greet_and_leave()
    call MPI_Comm_remote_size(between, number ERROR)
    CHECK(number == 1)
    call MPI_Sendrecv(me, 1, INT, 0, 1, in, 1, INT, 0, 1, between, MPI_STATUS_IGNORE ERROR)
    CHECK(in == other)
    call MPI_Comm_disconnect(between ERROR)
  end subroutine

  subroutine greet_children(count)
    integer :: count
    call MPI_Comm_remote_size(between, number ERROR)
    CHECK(number == count)
    value = 17
    call MPI_Bcast(value, 1, INT, MPI_ROOT, between ERROR)
    call MPI_Comm_disconnect(between ERROR)
  end subroutine

  subroutine refused()
    call MPI_Close_port(port, result)
    CHECK(result /= MPI_SUCCESS)
    call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, between, result)
    CHECK(result /= MPI_SUCCESS)
    call MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, between, result)
    CHECK(result /= MPI_SUCCESS)
    call MPI_Comm_join(-1, between, result)
    CHECK(result /= MPI_SUCCESS)
    call MPI_Comm_spawn(commands(1), arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, between, errors, &
                        result)
    CHECK(result /= MPI_SUCCESS)
    call MPI_Comm_spawn_multiple(2, commands, argument_lists, (/1, 1/), hints, 0, MPI_COMM_SELF, &
                                 between, errors, result)
    CHECK(result /= MPI_SUCCESS)
  end subroutine
end subroutine
