#include "core/runtime/launch_mark.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace aon::runtime {
namespace {

using Read = const char* (*)(const char* name);

constexpr size_t kMaxIdBytes = 96;                               ///< as launcher/launch_id.cpp
constexpr unsigned long long kFirstSpecialStep = 0xfffffff0ull;  ///< the same

const char* value(Read read, const char* name) {
  const char* text = read(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

/// The text of DIR/.launch, of which only the hash is kept.
class LaunchText {
 public:
  LaunchText() { add("launch "); }

  /// A part of the id, with what does not belong into a file name replaced.
  void add_id(const char* text) {
    for (; *text != '\0' && id_bytes_ < kMaxIdBytes; ++text, ++id_bytes_) {
      const char c = *text;
      const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || strchr(".-_@", c) != nullptr;
      add(is_plain ? c : '_');
    }
  }
  void end_id() { add("\nevidence "); }
  void add_evidence(const char* before, const char* text) {
    if (has_evidence_) add(" ");
    add(before);
    add(text);
    has_evidence_ = true;
  }
  bool has_id() const { return id_bytes_ != 0; }
  uint64_t hash() {
    add("\n");
    return hash_;
  }

 private:
  void add(const char* text) {
    for (; *text != '\0'; ++text) add(*text);
  }
  void add(char c) { hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull; }

  uint64_t hash_ = 0xcbf29ce484222325ull;
  size_t id_bytes_ = 0;
  bool has_evidence_ = false;
};

constexpr size_t kCommandBytes = 4096;  ///< that are looked at

/// In small pieces: the stack may be one of a signal handler.
bool has_word(int fd, const char* word) {
  const size_t overlap = strlen(word) - 1;
  char text[256];
  size_t kept = 0;
  for (size_t done = 0; done < kCommandBytes;) {
    const ssize_t got = ::read(fd, text + kept, sizeof text - kept);
    if (got <= 0) return false;
    const size_t bytes = kept + static_cast<size_t>(got);
    if (memmem(text, bytes, word, overlap + 1) != nullptr) return true;
    done += static_cast<size_t>(got);
    kept = bytes < overlap ? bytes : overlap;
    memmove(text, text + bytes - kept, kept);
  }
  return false;
}

/// A launch by hydra has its name from the command line of its proxy.
bool is_below_hydra(Read read) {
  if (!value(read, "PMI_RANK") && !value(read, "PMI_ID") && !value(read, "PMI_FD")) return false;
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/cmdline", getppid());
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is_proxy = has_word(fd, "proxy");
  close(fd);
  return is_proxy;
}

void add_id(Read read, LaunchText& text) {
  const char* job = value(read, "SLURM_JOB_ID");
  const char* step = value(read, "SLURM_STEP_ID");
  const char* run = value(read, "TORCHELASTIC_RUN_ID");
  if (const char* space = value(read, "PMIX_NAMESPACE")) {
    text.add_id(space);
    text.end_id();
    if (const char* uri = value(read, "OMPI_MCA_orte_hnp_uri")) text.add_evidence("", uri);
    return;
  }
  if (job != nullptr && step != nullptr && strtoull(step, nullptr, 10) < kFirstSpecialStep) {
    text.add_id(job);
    text.add_id(".");
    text.add_id(step);
  } else if (run != nullptr && strcmp(run, "none") != 0) {
    const char* restart = value(read, "TORCHELASTIC_RESTART_COUNT");
    text.add_id(run);
    text.add_id(".");
    text.add_id(restart == nullptr ? "0" : restart);
  }
  text.end_id();
}

}  // namespace

uint64_t launch_mark(Read read) {
  if (is_below_hydra(read)) return 0;
  LaunchText text;
  add_id(read, text);
  if (!text.has_id()) return 0;
  if (const char* restart = value(read, "SLURM_RESTART_COUNT")) {
    text.add_evidence("restart ", restart);
  }
  return text.hash();
}

}  // namespace aon::runtime
