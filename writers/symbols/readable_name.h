/// The name of a function as its author wrote it.
/// Thread: any.   Cost: 1 to 10 us for a C++ name.
#pragma once

#include <string>
#include <string_view>

namespace aon::symbols {

/// Demangles `name`:
///
///     _ZN3foo3barEi.constprop.0    foo::bar(int) [clone .constprop.0]
///     __solver_MOD_sweep           solver::sweep        gfortran, module procedures
///     _QMsolverPsweep              solver::sweep        flang
///     work._omp_fn.0, dgemm_       as they are
///
/// The underscore behind a Fortran procedure stays: C functions end with one too, and the linker's
/// name is the only thing known in a library without debug information. What is no mangled name,
/// or not a whole one, is returned unchanged.
std::string readable_name(std::string_view name);

}  // namespace aon::symbols
