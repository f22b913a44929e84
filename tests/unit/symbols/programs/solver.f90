! Names of Fortran: a module procedure, a contained one, and one outside of any module.
module solver
  implicit none
contains
  subroutine sweep(x)
    real, intent(inout) :: x
    call relax()
  contains
    subroutine relax()
      x = x * 0.5
    end subroutine relax
  end subroutine sweep
end module solver

subroutine outside(x)
  real, intent(inout) :: x
  x = x + 1.0
end subroutine outside

program heat
  use solver
  implicit none
  real :: x
  x = 8.0
  call sweep(x)
  call outside(x)
  print *, x
end program heat
