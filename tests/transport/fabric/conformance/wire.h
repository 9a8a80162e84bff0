// The connection between two ends of the tcp fabric. Bytes arrive at the other
// side in order.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_WIRE_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_WIRE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace conformance {

class Wire {
 public:
  virtual ~Wire() = default;
  // Accepts some of `bytes`, possibly none. Returns the number of accepted
  // bytes.
  virtual size_t Put(Side from, absl::Span<const uint8_t> bytes) = 0;
  // Returns the next bytes for `to`, in memory of exactly their size, or none.
  virtual std::vector<uint8_t> Take(Side to) = 0;
  // Declares that `side` will neither put nor take bytes any more.
  virtual void Close(Side side) = 0;
  // Returns true if the other side has closed and `to` has taken all bytes.
  virtual bool HasEnded(Side to) = 0;
};

// A wire in memory. Holds a limited number of bytes, like a socket.
class MemoryWire : public Wire {
 public:
  enum class Cuts {
    kNone,    // all bytes at once
    kRandom,  // log-uniform pieces
  };
  explicit MemoryWire(Cuts cuts) : cuts_(cuts) {}

  size_t Put(Side from, absl::Span<const uint8_t> bytes) override;
  std::vector<uint8_t> Take(Side to) override;
  void Close(Side side) override { closed_[Index(side)] = true; }
  bool HasEnded(Side to) override;

 private:
  static int Index(Side side) { return static_cast<int>(side); }
  size_t Cut(size_t size);

  const Cuts cuts_;
  std::mt19937_64 random_{11};
  std::string to_[2];
  bool closed_[2] = {false, false};
};

// A pair of real, non-blocking sockets.
class SocketWire : public Wire {
 public:
  SocketWire();

  size_t Put(Side from, absl::Span<const uint8_t> bytes) override;
  std::vector<uint8_t> Take(Side to) override;
  void Close(Side side) override { Socket(side).Reset(); }
  bool HasEnded(Side to) override { return ended_[static_cast<int>(to)]; }

 private:
  base::UniqueFd& Socket(Side side) { return sockets_[static_cast<int>(side)]; }

  base::UniqueFd sockets_[2];
  bool ended_[2] = {false, false};
};

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_WIRE_H_
