!> Annotations of Fortran programs: regions, steps, marks and counters, as in aon/annotate.h.
!>
!> Compile this file with the program and link libaon-annotate.a; neither needs AON at run time:
!>
!>     gfortran PREFIX/share/aon/fortran/aon.f90 program.f90 -LPREFIX/lib -laon-annotate
!>
!> Names are looked up each time where they are given as text, about 1 ns per character; a region
!> that is asked for once (aon_region) costs as in C.
module aon
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_int64_t, c_null_ptr, &
                                         c_ptr, c_size_t
  implicit none
  private

  public :: aon_region, aon_region_begin, aon_region_end, aon_step_begin, aon_step_end
  public :: aon_mark, aon_counter, aon_counter_set, aon_is_present

  !> The name of a region; of nothing without AON.
  type, public :: aon_region_t
    private
    type(c_ptr) :: handle = c_null_ptr
  end type aon_region_t

  type, public :: aon_counter_t
    private
    type(c_ptr) :: handle = c_null_ptr
  end type aon_counter_t

  interface
    function c_region(name, bytes) bind(c, name='aon_fortran_region') result(region)
      import :: c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: bytes
      type(c_ptr) :: region
    end function c_region
    function c_counter(name, bytes, unit, unit_bytes) bind(c, name='aon_fortran_counter') &
      result(counter)
      import :: c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*), unit(*)
      integer(c_size_t), value :: bytes, unit_bytes
      type(c_ptr) :: counter
    end function c_counter
    subroutine c_region_begin(region) bind(c, name='aon_fortran_region_begin')
      import :: c_ptr
      type(c_ptr), value :: region
    end subroutine c_region_begin
    subroutine c_region_end(region) bind(c, name='aon_fortran_region_end')
      import :: c_ptr
      type(c_ptr), value :: region
    end subroutine c_region_end
    subroutine c_step_begin(number) bind(c, name='aon_fortran_step_begin')
      import :: c_int64_t
      integer(c_int64_t), value :: number
    end subroutine c_step_begin
    subroutine c_step_end() bind(c, name='aon_fortran_step_end')
    end subroutine c_step_end
    subroutine c_mark(region) bind(c, name='aon_fortran_mark')
      import :: c_ptr
      type(c_ptr), value :: region
    end subroutine c_mark
    subroutine c_mark_integer(region, number) bind(c, name='aon_fortran_mark_integer')
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: region
      integer(c_int64_t), value :: number
    end subroutine c_mark_integer
    subroutine c_mark_real(region, number) bind(c, name='aon_fortran_mark_real')
      import :: c_ptr, c_double
      type(c_ptr), value :: region
      real(c_double), value :: number
    end subroutine c_mark_real
    subroutine c_counter_set(counter, number) bind(c, name='aon_fortran_counter_set')
      import :: c_ptr, c_double
      type(c_ptr), value :: counter
      real(c_double), value :: number
    end subroutine c_counter_set
    function c_is_present() bind(c, name='aon_fortran_is_present') result(present)
      import :: c_int
      integer(c_int) :: present
    end function c_is_present
  end interface

  !> Enters a region: one that was asked for, or a name.
  interface aon_region_begin
    module procedure region_begin, name_begin
  end interface aon_region_begin
  !> Leaves it.
  interface aon_region_end
    module procedure region_end, name_end
  end interface aon_region_end
  !> Begins the step of this number, of either kind of integer.
  interface aon_step_begin
    module procedure step_begin_short, step_begin_long
  end interface aon_step_begin
  !> Something of this name happened now, perhaps with a value.
  interface aon_mark
    module procedure mark_plain, mark_short, mark_long, mark_real
  end interface aon_mark

contains

  !> True when AON records, or could, in this process.
  logical function aon_is_present()
    aon_is_present = c_is_present() /= 0
  end function aon_is_present

  !> The region of this name; ask once and keep it.
  function aon_region(name) result(region)
    character(len=*), intent(in) :: name
    type(aon_region_t) :: region
    region%handle = c_region(name, len(name, kind=c_size_t))
  end function aon_region

  subroutine region_begin(region)
    type(aon_region_t), intent(in) :: region
    call c_region_begin(region%handle)
  end subroutine region_begin

  subroutine name_begin(name)
    character(len=*), intent(in) :: name
    call c_region_begin(c_region(name, len(name, kind=c_size_t)))
  end subroutine name_begin

  subroutine region_end(region)
    type(aon_region_t), intent(in) :: region
    call c_region_end(region%handle)
  end subroutine region_end

  subroutine name_end(name)
    character(len=*), intent(in) :: name
    call c_region_end(c_region(name, len(name, kind=c_size_t)))
  end subroutine name_end

  subroutine step_begin_short(number)
    integer(c_int32_t), intent(in) :: number
    call c_step_begin(int(number, c_int64_t))
  end subroutine step_begin_short

  subroutine step_begin_long(number)
    integer(c_int64_t), intent(in) :: number
    call c_step_begin(number)
  end subroutine step_begin_long

  subroutine aon_step_end()
    call c_step_end()
  end subroutine aon_step_end

  subroutine mark_plain(name)
    character(len=*), intent(in) :: name
    call c_mark(c_region(name, len(name, kind=c_size_t)))
  end subroutine mark_plain

  subroutine mark_short(name, number)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: number
    call c_mark_integer(c_region(name, len(name, kind=c_size_t)), int(number, c_int64_t))
  end subroutine mark_short

  subroutine mark_long(name, number)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: number
    call c_mark_integer(c_region(name, len(name, kind=c_size_t)), number)
  end subroutine mark_long

  subroutine mark_real(name, number)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: number
    call c_mark_real(c_region(name, len(name, kind=c_size_t)), number)
  end subroutine mark_real

  !> The counter of this name and unit; ask once and keep it.
  function aon_counter(name, unit) result(counter)
    character(len=*), intent(in) :: name, unit
    type(aon_counter_t) :: counter
    counter%handle = c_counter(name, len(name, kind=c_size_t), unit, len(unit, kind=c_size_t))
  end function aon_counter

  !> The counter has this value from now on.
  subroutine aon_counter_set(counter, number)
    type(aon_counter_t), intent(in) :: counter
    real(c_double), intent(in) :: number
    call c_counter_set(counter%handle, number)
  end subroutine aon_counter_set

end module aon
