/// Names of providers: which exist, which are installed, which of them a launch records. The one
/// place that knows the names; aon-run checks its options with it, the agent writes into the ledger
/// what was left out.
///
/// Installed is: a shim or an injected library beside libaon.so (mpi, cupti, nvtx, nccl), and
/// every libaon-provider-NAME.so of the provider folder. --providers also takes the path of one.
/// Thread: any.   Cost: one pass over a folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/options.h"
#include "core/base/result.h"

namespace aon::provider {

/// What --providers and --without say.
struct Selection {
  std::vector<std::string> providers;  ///< empty: all that are installed, but the example
  std::vector<std::string> without;
};

/// Folder of the providers that belong to the libraries in `library_folder`, and back.
std::string provider_folder(const std::string& library_folder);
std::string library_folder(const std::string& provider_folder);

/// Names of what is installed, sorted.
std::vector<std::string> installed_names(const std::string& library_folder,
                                         const std::string& provider_folder);

/// True when `name` records under `selection`.
bool is_wanted(const Selection& selection, const std::string& name);

/// Reasons of what the user left out himself.
constexpr char kExcludedReason[] = "excluded by --without";
constexpr char kNotChosenReason[] = "not in --providers";

/// Why a provider is off, for the ledger.
struct Exclusion {
  std::string reason;
  std::string remedy;
};
/// Of a provider whose variable the user had set himself.
Exclusion left_alone(const LeftAlone& one);
/// Whether `reason` is of such a one.
bool is_left_alone(const std::string& reason);
/// Nothing: it is wanted, or records only on request.
std::optional<Exclusion> exclusion(const Selection& selection, const std::string& name);

/// Errors: kInvalid names the option, the name or path that is wrong, and what is installed.
Status check_names(const Selection& selection, const std::vector<std::string>& installed);

/// For the node's service: every name is of an installed provider that reads the node alone.
/// Errors: kInvalid names the one that is not, and those that are.
Status check_node_names(const std::vector<std::string>& names, const std::string& provider_folder);

}  // namespace aon::provider
