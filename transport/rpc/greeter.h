// A server's fresh socket, until both sides have greeted.

#ifndef PENSTOCK_TRANSPORT_RPC_GREETER_H_
#define PENSTOCK_TRANSPORT_RPC_GREETER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/paths/half_open.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/greeting.h"
#include "transport/rpc/opening.h"

namespace penstock {
namespace rpc {

// Takes the client's greeting and answers it: with the version of the protocol,
// or with why not. Whoever does not greet within five seconds is dropped. Lives
// on the loop's thread.
class Greeter : public std::enable_shared_from_this<Greeter> {
 public:
  // Called with each socket whose client has the token.
  using Done = std::function<void(Opened, paths::HalfOpen::Place)>;

  static void Begin(progress::EventLoop* loop, base::UniqueFd socket,
                    const std::string& peer, const std::string& token,
                    paths::HalfOpen::Place place, Done done);

 private:
  Greeter(progress::EventLoop* loop, base::UniqueFd socket,
          const std::string& peer, const std::string& token,
          paths::HalfOpen::Place place, Done done);

  void Watch();
  void OnReadable();
  void Answer(const Greeting& greeting, absl::string_view rest);
  void Drop(const absl::Status& why);
  void End();

  progress::EventLoop* const loop_;
  base::UniqueFd socket_;
  const std::string peer_;
  const std::string token_;
  paths::HalfOpen::Place place_;
  Done done_;
  progress::EventLoop::Id watch_ = 0;
  progress::EventLoop::Id limit_ = 0;
  std::string received_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GREETER_H_
