// A new socket of a server, until both sides have sent their greeting.

#ifndef PENSTOCK_TRANSPORT_RPC_GREETER_H_
#define PENSTOCK_TRANSPORT_RPC_GREETER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/paths/half_open.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/greeting.h"
#include "transport/rpc/opening.h"

namespace penstock {
namespace rpc {

// A client that has shown the token.
struct Greeted {
  Opened opened;
  paths::HalfOpen::Slot
      place;  // released when both sides have agreed on a path
};

// The server's side of one greeting. Answers the client's greeting with the
// version of the protocol, or with the reason for a refusal. Drops a client
// that sends no greeting within five seconds. Lives on the loop's thread.
class Greeter : public std::enable_shared_from_this<Greeter> {
 public:
  // Called once, with the client if it has shown the token, or with the reason
  // for dropping the connection.
  using Done = std::function<void(absl::StatusOr<Greeted>)>;

  Greeter(progress::EventLoop* loop, base::UniqueFd socket,
          const std::string& peer, const std::string& token, Done done);

  // Reads the bytes that have arrived, then watches the socket. During a flood,
  // connections wait in the backlog before they are accepted. The greeting of
  // an honest client arrives during this wait, and the first read serves the
  // client immediately.
  void Start();
  // Reads once more. Drops the connection if the greeting is still incomplete.
  void MakeRoom();
  // Closes the socket without calling `done`.
  void End();

 private:
  void Watch();
  void OnReadable();
  void Answer(const Greeting& greeting, absl::string_view rest);
  void Drop(const absl::Status& why);

  progress::EventLoop* const loop_;
  base::UniqueFd socket_;
  const std::string peer_;
  const std::string token_;
  Done done_;  // null when over
  progress::EventLoop::Id watch_ = 0;
  progress::EventLoop::Id limit_ = 0;
  std::string received_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GREETER_H_
