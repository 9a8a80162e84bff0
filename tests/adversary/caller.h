// Calls of a victim's service, and whether they were answered.

#ifndef PENSTOCK_TESTS_ADVERSARY_CALLER_H_
#define PENSTOCK_TESTS_ADVERSARY_CALLER_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"
#include "tests/adversary/security.h"
#include "transport/options.h"

namespace penstock::adversary {

// A channel to 127.0.0.1 with a connection of its own.
std::shared_ptr<grpc::Channel> NewChannel(int port, const Options& options,
                                          const Identity& identity = {});

// One unary call of kEcho with `size` bytes, which are compared. INTERNAL where
// they are not the same.
grpc::Status Echo(grpc::Channel* channel, size_t size);

// A process that wants nothing but to be served, and must be: it calls over a
// tcp connection and over a shared memory connection that it keeps, and over
// ever new ones, however they come about, until it is stopped.
class Bystander {
 public:
  // Without `has_tcp` over shared memory alone.
  explicit Bystander(int port, bool has_tcp = true,
                     const Identity& identity = {});
  ~Bystander();

  // Blocks until each kind of connection has carried one more call, or one
  // failed.
  void AwaitCalls();
  // Ends the calls.
  void Stop();
  int calls() const { return calls_; }
  int connections() const { return connections_; }
  // The first failure, or nothing.
  std::string failure() const;

 private:
  void Run();
  void CallOnEach();
  // Until it is time for the next round. False: for none.
  bool Pause();
  void Check(const char* what, const grpc::Status& status);

  const int port_;
  const Identity identity_;
  std::shared_ptr<grpc::Channel> tcp_;
  std::shared_ptr<grpc::Channel> shm_;
  std::atomic<int> calls_{0};
  std::atomic<int> connections_{0};
  mutable std::mutex mu_;
  std::condition_variable changed_;
  bool stop_ = false;
  int rounds_ = 0;
  int wanted_rounds_ = 0;  // somebody waits for them
  std::string failure_;
  std::thread thread_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_CALLER_H_
