/// The items of a SortedStore as one process of an assembly hands them over to another (state.h):
/// in pieces, of which the last one is empty, so that neither side needs memory for all of them.
/// Thread: one.   Cost: a copy.   Errors: kIo, of the store.
#pragma once

#include <vector>

#include "writers/state.h"
#include "writers/waits/sorted_store.h"

namespace aon::writers {

constexpr size_t kPieceItems = 1u << 14;

template <class Item>
Status save_items(SortedStore<Item>* store, StateOut* out) {
  Result<typename SortedStore<Item>::Reader> reader = store->read();
  if (!reader) return reader.error();
  std::vector<Item> piece;
  for (;;) {
    Result<const Item*> next = reader->next();
    if (!next) return next.error();
    if (*next != nullptr) piece.push_back(**next);
    if (*next != nullptr && piece.size() < kPieceItems) continue;
    if (!piece.empty()) out->put(piece);
    piece.clear();
    if (*next == nullptr) break;
  }
  out->put(piece);
  return {};
}

/// `take(Item)` is given each of them.
template <class Item, class Take>
Status load_items(StateIn* in, Take take) {
  std::vector<Item> piece;
  do {
    if (!in->get(&piece)) return in->status();
    for (const Item& item : piece) {
      if (Status status = take(item); !status) return status;
    }
  } while (!piece.empty());
  return {};
}

}  // namespace aon::writers
