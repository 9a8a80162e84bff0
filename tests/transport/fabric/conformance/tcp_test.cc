// Runs the suite over the tcp fabric: through memory, whole and cut at random
// places, and through a pair of sockets.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "tests/transport/fabric/conformance/wire.h"
#include "tests/transport/fabric/tcp/pipe.h"
#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// The owner of both connections. In the product, the gRPC layer owns one
// connection in the same way.
class TcpHarness : public Harness {
 public:
  explicit TcpHarness(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {
    for (Side side : kSides) {
      ends_[Index(side)] = absl::make_unique<tcp::Endpoint>(&pipe(side));
    }
  }
  ~TcpHarness() override {
    for (Side side : kSides) Kill(side);  // the ends must go before their pipes
  }

  bool Step() override {
    bool any = false;
    for (Side side : kSides) {
      if (end(side) == nullptr) continue;
      if (Write(side)) any = true;
      if (Receive(side)) any = true;
    }
    return any;
  }
  void Kill(Side side) override {
    if (end(side) == nullptr) return;
    Harness::Kill(side);
    pipe(side).Finish();
    wire_->Close(side);
  }
  bool Cut() override {
    for (Side side : kSides) Break(side);
    return true;
  }

 private:
  tcp::Pipe& pipe(Side side) { return pipes_[Index(side)]; }
  tcp::Endpoint* tcp_end(Side side) {
    return static_cast<tcp::Endpoint*>(end(side));
  }

  bool Write(Side side) {
    if (!pipe(side).writing()) return false;
    const size_t size = wire_->Put(side, pipe(side).left().front().span());
    if (size == 0) return false;
    pipe(side).Drop(size);
    if (!pipe(side).left().empty()) return true;
    pipe(side).Finish();
    tcp_end(side)->OnWritten();
    return true;
  }

  bool Receive(Side side) {
    const std::vector<uint8_t> bytes = wire_->Take(side);
    if (!bytes.empty()) {
      tcp_end(side)->OnBytes(bytes);
      return true;
    }
    return wire_->HasEnded(side) && Break(side);
  }

  bool Break(Side side) {
    if (closed_[Index(side)]) return false;
    closed_[Index(side)] = true;
    tcp_end(side)->Break(absl::UnavailableError("the stream has ended"));
    return true;
  }

  const std::unique_ptr<Wire> wire_;
  tcp::Pipe pipes_[2];
  bool closed_[2] = {false, false};
};

template <typename SomeWire, typename... Arguments>
FabricCase Over(const std::string& name, Arguments... arguments) {
  FabricCase fabric;
  fabric.name = name;
  fabric.make = [arguments...] {
    return absl::make_unique<TcpHarness>(
        absl::make_unique<SomeWire>(arguments...));
  };
  fabric.waking = Waking::kPushed;
  return fabric;
}

}  // namespace

std::vector<FabricCase> Fabrics() {
  return {Over<MemoryWire>("TcpInMemory", MemoryWire::Cuts::kNone),
          Over<MemoryWire>("TcpCutAtRandom", MemoryWire::Cuts::kRandom),
          Over<SocketWire>("TcpOverSockets")};
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
