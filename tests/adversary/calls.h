// The calls of a victim that is the client of a hostile server.

#ifndef PENSTOCK_TESTS_ADVERSARY_CALLS_H_
#define PENSTOCK_TESTS_ADVERSARY_CALLS_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/channel.h"
#include "penstock/penstock.h"
#include "tests/adversary/security.h"

namespace penstock::adversary {

enum class Kind {
  kDuplex,  // writes eight bytes, and reads until the end
  kUnread,  // writes eight bytes, and reads nothing
  kLarge,   // writes endless messages of 1 MiB, and reads until the end
};

// The result of a call, and its time.
struct Outcome {
  int code = 0;
  double seconds = 0;
  std::string message;
};

// The deadline of each call. An attack therefore takes no longer.
constexpr std::chrono::seconds kCallDeadline(20);

Kind KindOf(const std::string& name);
std::string NameOf(Kind kind);

// Makes `calls` simultaneous calls of kEcho at `port`, on one channel. When all
// calls have ended, does the same on a new channel. Owns one thread.
class Quarry {
 public:
  Quarry(int port, Kind kind, int calls, const Identity& identity = {});
  ~Quarry();

  // Describes the paths of the channel in use.
  std::vector<PathReport> Describe();
  // Returns the outcomes of calls that have ended since the last
  // TakeOutcomes().
  std::vector<Outcome> TakeOutcomes();

 private:
  void Run();

  const int port_;
  const Kind kind_;
  const int calls_;
  const Identity identity_;
  std::atomic<bool> stop_{false};
  std::mutex mu_;
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<Outcome> outcomes_;
  std::thread thread_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_CALLS_H_
