/// Names of what NVTX tells: "DOMAIN/CATEGORY:MESSAGE", where the domain and the category are left
/// out when they are the default ones, and a category without a name is its number.
///
/// A message that was seen before is found by its address, and its text is compared: no lock and no
/// hash of the text. A registered string is the annotation itself.
/// Thread: any, no lock.   Signal: safe.   Cost: about 4 ns for a message seen before.
#pragma once

#include <aon/annotation.h>

#include "nvtx/interface.h"

namespace aon::nvtx {

constexpr uint32_t kMaxPrefix = 256;  ///< bytes of "DOMAIN/CATEGORY:"; longer domains are cut

/// A domain; null is the default one.   Owner: this file; never freed.
struct Domain {
  uint32_t name_bytes;
  char name[kMaxPrefix - 64];
};

/// UTF-8 of a wide string, cut at kMaxAnnotationName.
class Utf8 {
 public:
  explicit Utf8(const wchar_t* wide);
  const char* text() const { return text_; }

 private:
  char text_[kMaxAnnotationName + 8];
};

/// The domain of this name, made at the first call; one that stands for all further ones when there
/// are 256.
const Domain* find_domain(const char* name);

/// Names a category; up to 1024 in all domains.
void name_category(const Domain* domain, uint32_t category, const char* name);

/// The annotation of a message; one of no name for null.
const Annotation* find_message(const Domain* domain, uint32_t category, const char* message);

/// The same of an event's message, of whatever type.
const Annotation* find_message(const Domain* domain, const EventAttributes& event);

/// "WHAT NAME" in `domain`: the mark that says what something is called.
const Annotation* find_resource(const Domain* domain, const char* what, const char* name);

}  // namespace aon::nvtx
