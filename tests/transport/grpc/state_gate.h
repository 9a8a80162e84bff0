// Holds up the notice by which gRPC's channel hears that a connection is left.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_STATE_GATE_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_STATE_GATE_H_

#include <memory>

namespace penstock {
namespace core {

// Watches the state of one connection, and blocks the thread that tells its
// watchers. Not more than 64 may be made.
class StateGate {
 public:
  // Closes the gate of the Penstock client connection that was made last.
  // Returns null if there is none.
  static std::unique_ptr<StateGate> Close();
  // Opens the gate.
  ~StateGate();
  // Blocks until a notice is held up. Returns false after ten seconds.
  bool AwaitNotice();
  void Open();

 private:
  struct Shared;
  explicit StateGate(std::shared_ptr<Shared> shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_GRPC_STATE_GATE_H_
