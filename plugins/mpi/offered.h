/// Which of MPI's functions the program finds: those that its library has, as without us, though
/// libaon-mpi.so exports all. Some programs go by what there is, and do without the rest. mpi4py's
/// wheels have weak references, and send by MPI_Send where the one to MPI_Send_c is null.
///
/// - A program that is linked to no MPI library loads one later, together with what uses it
///   (Python). So when we are loaded into such a program, the functions that not every library has
///   become indirect ones (STT_GNU_IFUNC) in our symbol table: ld.so asks us each time that it
///   binds a reference to one, and gets null where the library, loaded by then, lacks it.
/// - From then on, and at the latest once the library is known, the names of those that it lacks
///   are taken out of the table. They stay out if another library takes its place: what that one
///   has more is bound to it, and its calls are not seen.
///
/// dlsym() gets no null from us: it would say nothing of it in dlerror(), and Python's ctypes reads
/// what that says. The first lookup of what a library lacks finds ours, the later ones none.
///
/// References that were bound before stay bound: a program that has looked at one, and found it
/// there, may call it. Such a call returns MPI_ERR_OTHER. As gold and lld link, it is bound no
/// sooner, and apart from what was looked at: so the name of a function stays in the table where a
/// reference may have ours.
///
/// Errors: where our symbol table cannot be written, all functions are there.
#pragma once

namespace aon::mpi {

/// Takes out what the library lacks, once. The library is known. Thread: any.
/// Cost: some 100 us, once.
void offer_what_the_library_has() noexcept;

}  // namespace aon::mpi
