// A server that echoes, and calls to it, by gRPC's public API.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_ECHO_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_ECHO_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "penstock/penstock.h"

namespace penstock {
namespace event_engine {

// Options for a side with Penstock, and for a stock side.
inline Options With(Policy policy) {
  Options options;
  options.policy = policy;
  return options;
}
const Options kPenstock = With(Policy::kPrefer);
const Options kStock = With(Policy::kOff);

// The size of HTTP/2's windows. By default, gRPC derives the size from the
// times of the network, which grow without limit on a busy machine.
enum class Windows { kMeasured, kFixed };

// Echoes each message of each call. The method "/test/Wait" first blocks its
// thread until Release().
class EchoServer : private grpc::CallbackGenericService {
 public:
  // Starts the server at an IPv4 address. Starts a stock server with
  // Policy::kOff. Picks a free port if `port` is 0.
  explicit EchoServer(const Options& options,
                      std::shared_ptr<grpc::ServerCredentials> credentials =
                          grpc::InsecureServerCredentials(),
                      int port = 0, const std::string& ip = "127.0.0.1",
                      Windows windows = Windows::kMeasured);
  ~EchoServer() override;

  int port() const { return port_; }
  std::string target() const;
  grpc::Server* server() { return server_.get(); }
  void Release() { released_.Notify(); }
  void WaitUntilBlocked() { blocked_.WaitForNotification(); }

 private:
  class Reactor;
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  int port_ = 0;
  absl::Notification blocked_;
  absl::Notification released_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns a new channel, with connections of its own.
std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& target, const Options& options,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials =
        grpc::InsecureChannelCredentials(),
    Windows windows = Windows::kMeasured);

// A call with one message at a time in each direction.
class EchoCall {
 public:
  explicit EchoCall(const std::shared_ptr<grpc::Channel>& channel,
                    const std::string& method = "/test/Echo");
  // Ends the call, unless Finish() was called.
  ~EchoCall();

  // Send and receive in any order, at most one of each at a time. Return false
  // if the call has ended.
  bool Send(const std::string& message) { return Send(grpc::Slice(message)); }
  bool Send(const grpc::Slice& message);
  bool Receive(std::string* message);
  grpc::Status Finish();

 private:
  // Waits for the operation `tag`.
  bool WaitFor(void* tag);

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool finished_ = false;
};

// Sends `message` in a call of its own. Returns OK if the echo is equal.
grpc::Status Echo(const std::shared_ptr<grpc::Channel>& channel,
                  const std::string& message,
                  const std::string& method = "/test/Echo");

// Returns the path of the process's only Penstock connection to `target`: "shm"
// or "http2".
std::string PathTo(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& target);
// Makes calls until the path to `target` is "shm". Returns false if the path
// stays "http2".
bool ReachesShm(const std::shared_ptr<grpc::Channel>& channel,
                const std::string& target);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_ECHO_H_
