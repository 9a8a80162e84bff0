// Lets threads write what a connection has held back.

#ifndef PENSTOCK_TRANSPORT_GRPC_HELD_WRITE_H_
#define PENSTOCK_TRANSPORT_GRPC_HELD_WRITE_H_

#include <functional>
#include <memory>
#include <utility>

#include "transport/grpc/polling/before_wait.h"

namespace penstock {
namespace core {

// Writes for a connection during a burst of short writes (write_burst.h). Two
// threads write: the thread that holds messages back, before the thread waits
// in gRPC, and a background thread, every 20 to 100 us. This limits the time
// for which a message is held, even if the program computes after its message.
class HeldWrite final : public BeforeWait {
 public:
  enum class Moment {
    kWait,  // the thread that has held messages back is about to wait
    kTime,  // the background thread calls
    kEnd,   // the same, and the result should be false
  };
  // Writes what is held back. The background thread calls until the result is
  // false. Does not block, because that thread serves all connections.
  using Write = std::function<bool(Moment moment)>;

  // Makes the background thread call `write`, immediately and for about a
  // millisecond, then with kEnd. Returns null if that thread cannot be started.
  // The thread holds the result until its last call has ended.
  static std::shared_ptr<HeldWrite> Start(Write write);

  explicit HeldWrite(Write write) : write_(std::move(write)) {}

  void OnWait() override { write_(Moment::kWait); }

 private:
  const Write write_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HELD_WRITE_H_
