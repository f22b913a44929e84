#include "nvtx/payload.h"

#include <string.h>

#include "nvtx/names.h"
#include "nvtx/schemas.h"

namespace aon::nvtx {
namespace {

constexpr size_t kMaxPayloads = 64;  // more of one event are not looked at

/// Copies a field that the payload has. False: it is too short.
bool copy(const PayloadData& payload, const Field& field, void* out, size_t room) {
  if (field.bytes == 0 || payload.data == nullptr) return false;
  if (payload.bytes < uint64_t{field.offset} + field.bytes) return false;
  memcpy(out, static_cast<const char*>(payload.data) + field.offset,
         field.bytes < room ? field.bytes : room);
  return true;
}

Value number_of(const PayloadData& payload, const Field& field) {
  uint64_t bits = 0;
  if (!copy(payload, field, &bits, sizeof bits)) return {ValueType::kNone, 0};
  switch (field.kind) {
    case Kind::kUnsigned:
      return {ValueType::kUnsigned, bits};
    case Kind::kSigned: {
      const uint32_t unused = 64 - 8 * field.bytes;
      return {ValueType::kSigned,
              static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused)};
    }
    case Kind::kReal: {
      if (field.bytes == sizeof(double)) return {ValueType::kReal, bits};
      float value;
      memcpy(&value, &bits, sizeof value);
      return real_value(static_cast<double>(value));
    }
    default:
      return {ValueType::kNone, 0};
  }
}

/// Reads the message into `event`; an embedded one into `text`, of kMaxAnnotationName + 2 bytes.
void read_message(const PayloadData& payload, const Field& field, EventAttributes* event,
                  char* text) {
  Message message = {};
  if (field.kind == Kind::kFixedText) {
    constexpr size_t kRoom = kMaxAnnotationName + 1;
    if (!copy(payload, field, text, kRoom)) return;
    text[field.bytes < kRoom ? field.bytes : kRoom] = '\0';
    message.ascii = text;
  } else if (!copy(payload, field, &message, sizeof message) || message.ascii == nullptr) {
    return;
  }
  event->message = message;
  event->message_type =
      field.kind == Kind::kRegistered ? MessageType::kRegistered : MessageType::kAscii;
}

}  // namespace

Seen look_at_payloads(const Domain* domain, const EventAttributes& attributes,
                      const PayloadData* payloads, size_t count) {
  EventAttributes event = attributes;
  event.struct_bytes = sizeof event;
  Value value = {ValueType::kNone, 0};
  int numbers = 0;
  const char* schema_name = "";
  char text[kMaxAnnotationName + 2];
  for (size_t i = 0; payloads != nullptr && i < count && i < kMaxPayloads; ++i) {
    const PayloadData& payload = payloads[i];
    const Layout* layout = find_layout(domain, payload.schema);
    if (layout != nullptr) {
      if (schema_name[0] == '\0') schema_name = layout->name;
      if (layout->message.bytes != 0) read_message(payload, layout->message, &event, text);
      copy(payload, layout->category, &event.category, sizeof event.category);
    }
    // Of a text there are perhaps fewer bytes than the pointer has that schemas contain.
    const Field number =
        layout != nullptr ? layout->number : basic_type(static_cast<EntryType>(payload.schema));
    if (!is_number(number)) continue;
    const Value found = number_of(payload, number);
    if (found.type == ValueType::kNone) continue;
    value = found;
    ++numbers;
  }
  if (event.message_type == MessageType::kNone) {
    event.message_type = MessageType::kAscii;
    event.message.ascii = schema_name;
  }
  return {find_message(domain, event), numbers == 1 ? value : Value{ValueType::kNone, 0}};
}

}  // namespace aon::nvtx
