// The opening of a client's connection: from the name of the target until both
// sides have sent their greetings.

#ifndef PENSTOCK_TRANSPORT_RPC_OPENING_H_
#define PENSTOCK_TRANSPORT_RPC_OPENING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/resolve.h"

namespace penstock {
namespace rpc {

// A socket on which a session can start.
struct Opened {
  base::UniqueFd socket;
  uint8_t version = 0;
  std::string received;  // the bytes after the answer
  std::string peer;      // the peer's address
};

//   state        event                      action              next
//   kResolving   addresses                  connect to first    kConnecting
//   kConnecting  refused                    connect to next     kConnecting
//   kConnecting  connected                  send the greeting   kGreeting
//   kGreeting    answer                     report              kOver
//   any          error, time limit, Cancel  report              kOver
//
// The opening of one socket. All functions except Begin() and Cancel() run on
// the loop's thread.
class Opening : public std::enable_shared_from_this<Opening> {
 public:
  // Called with the socket, or with an error. Called once, on the loop's
  // thread, unless the opening is cancelled.
  using Done = std::function<void(absl::StatusOr<Opened>)>;

  static std::shared_ptr<Opening> Begin(progress::EventLoop* loop,
                                        const HostPort& target,
                                        const std::string& token,
                                        absl::Duration limit, Done done);
  // Ends the opening soon, without calling `done`. Thread-safe.
  void Cancel();

 private:
  Opening(progress::EventLoop* loop, const HostPort& target,
          const std::string& token, Done done)
      : loop_(loop), target_(target), token_(token), done_(std::move(done)) {}

  void OnResolved(absl::StatusOr<Addresses> addresses);
  void ConnectToNext();
  void Watch(uint32_t events);
  void OnSocket();
  void OnConnected();
  void OnReadable();
  void Finish(absl::StatusOr<Opened> result);
  std::string TargetText() const { return target_.host + ":" + target_.port; }

  progress::EventLoop* const loop_;
  const HostPort target_;
  const std::string token_;
  Done done_;  // null when over
  progress::EventLoop::Id limit_ = 0;

  Addresses addresses_;
  size_t next_ = 0;  // index in addresses_
  absl::Status last_error_;
  base::UniqueFd socket_;
  progress::EventLoop::Id watch_ = 0;
  bool connected_ = false;
  std::string received_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_OPENING_H_
