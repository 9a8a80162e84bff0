// Delays the notification of gRPC's channel about a closing connection.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_STATE_GATE_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_STATE_GATE_H_

#include <memory>

namespace penstock {
namespace core {

// A gate in front of the notifications about one connection's state. A closed
// gate blocks the thread that notifies the watchers. A process can make at most
// 64 gates.
class StateGate {
 public:
  // Closes the gate of the newest Penstock client connection. Returns null if
  // there is none.
  static std::unique_ptr<StateGate> Close();
  // Opens the gate.
  ~StateGate();
  // Blocks until a notification is delayed. Returns false after ten seconds.
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
