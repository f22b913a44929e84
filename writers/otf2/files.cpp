// Files of the archive: the paradigm MPI-IO, one file per name, one handle per opening.

#include "writers/otf2/definitions.h"
#include "writers/otf2/ids.h"
#include "writers/otf2/io_modes.h"

namespace aon::writers::otf2 {

/// A name says nothing about the nodes that see the file, so its scope is undefined.
void GlobalDefinitions::write_files() {
  if (model_.file_names.empty()) return;
  const uint32_t paradigm = string_id("MPI-IO");
  note(OTF2_GlobalDefWriter_WriteIoParadigm(
      file_, kIoParadigm, paradigm, paradigm, OTF2_IO_PARADIGM_CLASS_PARALLEL,
      OTF2_IO_PARADIGM_FLAG_NONE, 0, nullptr, nullptr, nullptr));
  uint32_t name_id = 0;
  for (const std::string& name : model_.file_names) {
    note(OTF2_GlobalDefWriter_WriteIoRegularFile(file_, name_id++, string_id(name),
                                                 OTF2_UNDEFINED_SYSTEM_TREE_NODE));
  }
  uint32_t id = 0;
  for (const GlobalFile& file : model_.files) {
    const bool is_unseen = (file.mode & kFileOpenedUnseen) != 0;
    note(OTF2_GlobalDefWriter_WriteIoHandle(
        file_, id, string_id(""), file.name, kIoParadigm,
        is_unseen ? OTF2_IO_HANDLE_FLAG_PRE_CREATED : OTF2_IO_HANDLE_FLAG_NONE,
        file.communicator.value_or(OTF2_UNDEFINED_COMM), OTF2_UNDEFINED_IO_HANDLE));
    if (is_unseen) {
      note(OTF2_GlobalDefWriter_WriteIoPreCreatedHandleState(file_, id, io_access_mode(file.mode),
                                                             io_status_flags(file.mode)));
    }
    ++id;
  }
}

}  // namespace aon::writers::otf2
