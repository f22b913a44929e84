! rod: heat in a rod, annotated in Fortran; see rod.c.
!
! Build:  gfortran PREFIX/share/aon/fortran/aon.f90 rod.f90 -LPREFIX/lib -laon-annotate -o rod
program rod_program
  use aon
  implicit none

  integer, parameter :: real64 = selected_real_kind(15)
  integer, parameter :: cells = 1000, step_count = 20
  real(real64) :: rod(0:cells + 1), next(0:cells + 1), change
  type(aon_region_t) :: halo, compute, residual
  type(aon_counter_t) :: residual_counter
  integer :: step

  halo = aon_region('halo')
  compute = aon_region('compute')
  residual = aon_region('residual')
  residual_counter = aon_counter('residual', 'K^2')

  call aon_region_begin('setup')
  rod = 0.0_real64
  rod(1:cells/2) = 100.0_real64
  call aon_region_end('setup')

  do step = 0, step_count - 1
    call aon_step_begin(step)
    call exchange_ends()
    call diffuse()
    change = take_over()
    call aon_counter_set(residual_counter, change)
    call aon_step_end()
  end do
  call aon_mark('done', step_count)
  print '(a, i0, a, es12.6)', 'rod: ', step_count, ' steps, residual ', change

contains

  subroutine exchange_ends()
    call aon_region_begin(halo)
    rod(0) = rod(cells)
    rod(cells + 1) = rod(1)
    call aon_region_end(halo)
  end subroutine exchange_ends

  subroutine diffuse()
    call aon_region_begin(compute)
    next(1:cells) = 0.25_real64*(rod(0:cells - 1) + 2*rod(1:cells) + rod(2:cells + 1))
    call aon_region_end(compute)
  end subroutine diffuse

  function take_over() result(sum_of_changes)
    real(real64) :: sum_of_changes
    call aon_region_begin(residual)
    sum_of_changes = sum((next(1:cells) - rod(1:cells))**2)
    rod(1:cells) = next(1:cells)
    call aon_region_end(residual)
  end function take_over

end program rod_program
