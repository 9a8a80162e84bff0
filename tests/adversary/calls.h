// The calls with which a client walks into a hostile server's arms.

#ifndef PENSTOCK_TESTS_ADVERSARY_CALLS_H_
#define PENSTOCK_TESTS_ADVERSARY_CALLS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/channel.h"
#include "transport/penstock.h"

namespace penstock::adversary {

enum class Kind {
  kDuplex,  // writes eight bytes, and reads to the end
  kUnread,  // writes eight bytes, and reads nothing
  kLarge,   // writes messages of 1 MiB without end, and reads to the end
};

Kind KindOf(const std::string& name);
std::string NameOf(Kind kind);

// Calls kEcho at `port`, so many at once on one channel; when all of them have
// ended, so many on the next one. Threads: one of its own.
class Quarry {
 public:
  Quarry(int port, Kind kind, int calls);
  ~Quarry();

  // Of the channel in use.
  std::vector<PathReport> Describe();

 private:
  void Run();

  const int port_;
  const Kind kind_;
  const int calls_;
  std::atomic<bool> stop_{false};
  std::mutex mu_;
  std::shared_ptr<grpc::Channel> channel_;
  std::thread thread_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_CALLS_H_
