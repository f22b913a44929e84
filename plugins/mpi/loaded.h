/// The files that the program has loaded, and their symbols, as dlsym() and dladdr() tell them.
/// Before glibc 2.34 these lie in libdl, which a program with MPI need not have (MPICH does without
/// it): there the files' own tables are read. Nothing can be loaded later in such a program.
/// Thread: any; ld.so's lock is taken, so no callback of dl_iterate_phdr() may ask.
#pragma once

#include <link.h>

namespace aon::mpi {

/// A loaded file. `dynamic` is another one for each; null: not known.
struct LoadedFile {
  ElfW(Addr) base = 0;    ///< what is added to the file's own addresses
  const char* path = "";  ///< empty: the program. Lives as long as the file
  const ElfW(Dyn) * dynamic = nullptr;
};

/// True where dlsym() and its like are there.
bool has_libdl() noexcept;

/// The file that `address` lies in.   Cost: ld.so's lock, some 100 ns; without libdl some us.
LoadedFile file_of(const void* address) noexcept;

/// What programs are linked to the file by; its name where it says nothing. Lives as long as it.
const char* soname_of(const LoadedFile& file) noexcept;

/// The definition of `name` behind this library, as dlsym(RTLD_NEXT).
void* symbol_behind_us(const char* name) noexcept;

/// The one that the program sees, as dlsym(RTLD_DEFAULT).
void* symbol_of_program(const char* name) noexcept;

/// The one of `file`, or of those behind it, which it may need: without libdl.
void* symbol_since(const LoadedFile& file, const char* name) noexcept;

/// The definition of `name` in `file` by its tables; null: it has none, or an indirect one.
void* symbol_in(const LoadedFile& file, const char* name) noexcept;

/// The entry of that definition in the file's table.
const ElfW(Sym) * definition_in(const LoadedFile& file, const char* name) noexcept;

/// Whether code can be executed on the page of `address`, in a loaded file.
bool is_executable(const void* address) noexcept;

/// Whether it is code of ld.so itself (ld-linux-x86-64.so.2, ld64.so.2). That of dlsym() is not.
/// No, and of presence_in_child() no library, before may_load_libraries() was asked.
bool is_of_the_loader(const void* address) noexcept;

/// Whether a loaded file but ours calls dlopen(), so that libraries may be loaded later.
bool may_load_libraries() noexcept;

/// Tells of each name of MPI that loaded files but ours refer to, of some more than once. `note`
/// may not ask ld.so.
void visit_references(void (*note)(const char* name, void* context), void* context) noexcept;

enum class Presence { kNoLibrary, kLacking, kThere };

/// Whether an MPI library, a loaded file but ours that has PMPI_Init, has `name` or P`name`.
/// Cost: ld.so's lock, some 100 ns; some 10 us for the first one after files were loaded.
Presence presence_of(const char* name) noexcept;

/// The same, without a lock, by the list that ld.so keeps for debuggers: for a forked child. A
/// thread that is not there may have had the lock of dl_iterate_phdr(), which glibc, other than
/// dlsym()'s, leaves locked.   Cost: some us.
Presence presence_in_child(const char* name) noexcept;

}  // namespace aon::mpi
