/// Descriptors of NCCL's events as bytes, by a table of offsets of each version: written apart from
/// the plugin's own layouts, so that two descriptions are compared. What NCCL leaves unset is junk.
/// Thread: any.   Cost: none.
#pragma once

#include <cstdint>
#include <cstring>

namespace aon::test::nccl {

constexpr uint64_t kGroup = 1, kColl = 2, kP2p = 4, kProxyOp = 8, kProxyStep = 16, kProxyCtrl = 32,
                   kKernelCh = 64, kNetPlugin = 128, kGroupApi = 256, kCollApi = 512,
                   kP2pApi = 1024, kKernelLaunch = 2048, kCeColl = 4096;
constexpr int kStepsInFlight = 8;  ///< of a proxy's work on one channel

/// Offsets of a collective in versions 1 to 7.
struct CollOffsets {
  int sequence, function, count, root, type, channels, algorithm, protocol;
};
constexpr CollOffsets kCollOffsets[8] = {
    {},
    {40, 48, 72, 80, 84, 104, 106, 107},
    {40, 48, 72, 80, 88, 104, 112, 120},
    {40, 48, 72, 80, 88, 96, 104, 112},
    {24, 32, 56, 64, 72, 80, 88, 96},
    {24, 32, 56, 64, 72, 80, 88, 96},
    {24, 32, 56, 64, 72, 80, 88, 96},
    {24, 32, 56, 64, 72, 80, 88, 96},
};
struct P2pOffsets {
  int function, type, count, peer, channels;
};
constexpr P2pOffsets kP2pOffsets[8] = {
    {},
    {40, 56, 64, 72, -1},
    {40, 56, 64, 72, -1},
    {40, 56, 64, 72, -1},
    {24, 40, 48, 56, -1},
    {24, 40, 48, 56, 60},
    {24, 40, 48, 56, 60},
    {24, 40, 48, 56, 60},
};

class Event {
 public:
  Event(int version, uint64_t type, void* parent, int rank) {
    std::memset(bytes_, 0xab, sizeof bytes_);
    if (version <= 4) {
      bytes_[0] = static_cast<unsigned char>(type);
    } else {
      put(0, type);
    }
    put(8, parent);
    put(16, rank);
  }

  template <class T>
  Event& put(int offset, T value) {
    std::memcpy(bytes_ + offset, &value, sizeof value);
    return *this;
  }
  void* data() { return bytes_; }

 private:
  alignas(8) unsigned char bytes_[136];
};

}  // namespace aon::test::nccl
