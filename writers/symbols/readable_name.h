/// The name of a function as its author wrote it.
/// Thread: any.   Cost: 1 to 10 us for a C++ name. One made to harm takes all memory and time: a
/// hundred bytes of it stand for any number of bytes, and the demangler knows no limit. So names of
/// files are read in a helper (resolver.h), those of records by readable_names().
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aon::symbols {

constexpr size_t kMaxNameBytes = 4096;

/// Demangles `name`:
///
///     _ZN3foo3barEi.constprop.0    foo::bar(int) [clone .constprop.0]
///     __solver_MOD_sweep           solver::sweep        gfortran, module procedures
///     _QMsolverPsweep              solver::sweep        flang
///     work._omp_fn.0, dgemm_       as they are
///
/// The underscore behind a Fortran procedure stays: C functions end with one too, and the linker's
/// name is the only thing known in a library without debug information. What is no mangled name,
/// or not a whole one, is returned unchanged. A result of more than kMaxNameBytes is cut there and
/// ends with "...".
std::string readable_name(std::string_view name);

}  // namespace aon::symbols
