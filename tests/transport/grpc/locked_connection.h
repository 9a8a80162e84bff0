// Holds the lock of a connection, as a thread does that has lost its core.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_LOCKED_CONNECTION_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_LOCKED_CONNECTION_H_

#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"

namespace penstock {
namespace core {

// Holds the lock of one connection for its lifetime, on a thread of its own.
class LockedConnection {
 public:
  // Locks the server's newest connection. Returns null if there is none.
  static std::unique_ptr<LockedConnection> Newest();
  ~LockedConnection();

 private:
  absl::Notification locked_;
  absl::Notification ends_;
  std::thread thread_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_GRPC_LOCKED_CONNECTION_H_
