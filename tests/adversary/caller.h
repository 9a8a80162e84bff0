// Calls a victim's service, and checks the answers.

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
#include "penstock/options.h"
#include "tests/adversary/security.h"

namespace penstock::adversary {

// Makes a channel to 127.0.0.1 with its own connection.
std::shared_ptr<grpc::Channel> NewChannel(int port, const Options& options,
                                          const Identity& identity = {});

// Makes a unary call of kEcho with `size` bytes. Returns INTERNAL if the reply
// has other bytes.
grpc::Status Echo(grpc::Channel* channel, size_t size);

// An honest client, which the victim must serve. The client calls until it is
// stopped: over one tcp connection and one shm connection, and repeatedly over
// new connections on any path.
class Bystander {
 public:
  // Begins the calls. Without `has_tcp`, calls only over shared memory.
  explicit Bystander(int port, bool has_tcp = true,
                     const Identity& identity = {});
  ~Bystander();

  // Blocks until each kind of connection has carried another call, or a call
  // has failed.
  void AwaitCalls();
  // Ends the calls, and waits for them.
  void Stop();
  int calls() const { return calls_; }
  int connections() const { return connections_; }
  // Returns the first failure, or an empty string.
  std::string failure() const;

 private:
  void Run();
  void CallOnEach();
  // Waits for the next round. Returns false after Stop().
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
  int wanted_rounds_ = 0;  // rounds that somebody waits for
  std::string failure_;
  std::thread thread_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_CALLER_H_
