// Makes calls while something happens to the devices under them.

#ifndef PENSTOCK_TESTS_E2E_VERBS_TRAFFIC_H_
#define PENSTOCK_TESTS_E2E_VERBS_TRAFFIC_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/channel.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

// Runs two threads of unary calls and two streams, to an EchoService, until
// Stop(). A stream has many messages under way. A message that is lost,
// repeated, out of order or changed fails the running test, and so does a call
// that fails.
class Traffic {
 public:
  // Messages have these sizes, by turns.
  Traffic(std::shared_ptr<grpc::Channel> channel, std::vector<size_t> sizes);
  ~Traffic() { Stop(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Returns whether each thread gets as many messages back before the time is
  // up.
  bool AwaitMessages(int count, std::chrono::seconds time) const;
  // Waits until the messages under way have come back, and ends the calls.
  void Stop();

 private:
  static constexpr int kLanes = 4;

  void CallUntilStopped(int lane);
  void StreamUntilStopped(int lane);
  uint32_t IdOf(int lane, uint32_t number) const;
  size_t SizeOf(uint32_t number) const;

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<TestService::Stub> stub_;
  const std::vector<size_t> sizes_;
  std::atomic<bool> stopped_{false};
  std::array<std::atomic<int>, kLanes> received_{};
  std::vector<std::thread> threads_;
};

// Captures standard error while it lives.
class ErrorTap {
 public:
  ErrorTap();
  ~ErrorTap();
  // Returns what was captured so far. At the end it also appears in the test's
  // own output.
  std::string Text() const;

 private:
  int original_;
  int file_;
};

// Counts the objects that the kernel's RDMA subsystem has for this process, by
// kind. Without memory windows, which it does not count.
struct RdmaObjects {
  RdmaObjects();
  std::string text;  // "cm_id 1, cq 2, mr 6, pd 2, qp 1, srq 1"
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_VERBS_TRAFFIC_H_
