#include "writers/otf2/window.h"

#include <algorithm>

namespace aon::writers::otf2 {

void Window::begin_location(uint64_t start_ns) {
  start_ns_ = start_ns;
  is_inside_ = start_ns == 0;
  open_.clear();
  counters_.reset();
  old_requests_.clear();
  old_request_end_ = 0;
  files_.clear();
  last_old_io_ = 0;
  last_old_transfer_ = 0;
  used_again_.clear();
  old_locks_.clear();
}

std::span<const Event> Window::filter(std::span<const Event> events) {
  if (start_ns_ == 0) return events;
  out_.clear();
  for (const Event& event : events) {
    if (!is_inside_ && event.time_ns < start_ns_ && !reaches_window(event)) {
      follow(event);
      continue;
    }
    if (!is_inside_) enter_open();
    add(event);
  }
  return out_;
}

/// Keeps what is open before the window.
void Window::follow(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kCollectiveBegin:
    case EventKind::kRmaCollectiveBegin:
    case EventKind::kLostBegin:
      open_.push_back(event);
      break;
    case EventKind::kLeave:
    case EventKind::kCollectiveEnd:
    case EventKind::kRmaCollectiveEnd:
    case EventKind::kLostEnd:
      if (!open_.empty()) open_.pop_back();
      break;
    case EventKind::kSendRequest:
    case EventKind::kReceiveRequest:
    case EventKind::kCollectiveRequest:
      if (old_requests_.size() < kMaxOldRequests) {
        old_requests_.insert(event.request);
      } else {
        old_request_end_ = std::max(old_request_end_, event.request + 1);
      }
      break;
    case EventKind::kSendComplete:
    case EventKind::kReceiveComplete:
    case EventKind::kRequestCancelled:
    case EventKind::kCollectiveComplete:
      old_requests_.erase(event.request);
      break;
    case EventKind::kCounters:
      counters_ = event;
      break;
    case EventKind::kRmaTransfer:
    case EventKind::kRmaLock:
    case EventKind::kRmaUnlock:
      follow_rma(event);
      break;
    default:
      follow_io(event);
      break;
  }
}

void Window::follow_rma(const Event& event) {
  if (event.kind == EventKind::kRmaTransfer) {
    last_old_transfer_ = std::max(last_old_transfer_, event.request);
  } else if (event.kind == EventKind::kRmaLock) {
    old_locks_.insert({event.communicator, event.peer});
  } else {
    old_locks_.erase({event.communicator, event.peer});
  }
}

void Window::add_rma(const Event& event) {
  const bool is_release = event.kind == EventKind::kRmaUnlock;
  if (is_release && old_locks_.erase({event.communicator, event.peer}) != 0) return;
  if (event.kind == EventKind::kRmaTransfer) {
    if (event.request <= last_old_transfer_) used_again_.insert(event.request);
  } else if (!is_release && is_old_transfer(event)) {
    return;
  }
  out_.push_back(event);
}

void Window::follow_io(const Event& event) {
  switch (event.kind) {
    case EventKind::kIoOpen:
      files_.push_back(event);
      break;
    case EventKind::kIoClose:
      std::erase_if(files_, [&](const Event& open) { return open.file() == event.file(); });
      break;
    case EventKind::kIoBegin:
      open_.push_back(event);
      break;
    case EventKind::kIoIssued:
      last_old_io_ = event.request;
      [[fallthrough]];
    case EventKind::kIoComplete:
      if (!open_.empty() && open_.back().kind == EventKind::kIoBegin) open_.pop_back();
      break;
    default:
      break;
  }
}

void Window::enter_open() {
  is_inside_ = true;
  if (counters_) {
    counters_->time_ns = start_ns_;
    out_.push_back(*counters_);
  }
  for (Event& event : files_) {
    event.time_ns = start_ns_;
    out_.push_back(event);
  }
  for (Event& event : open_) {
    event.time_ns = start_ns_;
    out_.push_back(event);
  }
}

void Window::add(const Event& event) {
  switch (event.kind) {
    case EventKind::kSendComplete:
    case EventKind::kRequestCancelled:
    case EventKind::kCollectiveComplete:
      if (!is_old(event)) out_.push_back(event);
      break;
    case EventKind::kReceiveComplete:
      out_.push_back(event);
      if (is_old(event)) out_.back().kind = EventKind::kReceive;
      break;
    case EventKind::kIoComplete:
    case EventKind::kIoCancelled:
      if (!is_old_io(event)) out_.push_back(event);
      break;
    case EventKind::kRmaTransfer:
    case EventKind::kRmaLocalComplete:
    case EventKind::kRmaRequestComplete:
    case EventKind::kRmaRemoteComplete:
    case EventKind::kRmaUnlock:
      add_rma(event);
      break;
    case EventKind::kDeviceGap: {
      Event& gap = out_.emplace_back(event);
      gap.time_ns = std::max(event.time_ns, start_ns_);
      gap.bytes_received -= gap.time_ns - event.time_ns;
      break;
    }
    case EventKind::kNcclEnd:  // it began at `bytes`
      if (event.bytes >= start_ns_) out_.push_back(event);
      break;
    default:
      out_.push_back(event);
  }
}

}  // namespace aon::writers::otf2
