// Makes calls during events of the underlying devices.

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
// Stop(). A stream has many messages in flight. A lost, repeated, reordered or
// changed message, or a failed call, fails the running test.
class Traffic {
 public:
  // Starts calls over `channel`. The messages' sizes rotate through `sizes`.
  Traffic(std::shared_ptr<grpc::Channel> channel, std::vector<size_t> sizes);
  ~Traffic() { Stop(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Returns true once each thread has received `count` more messages, or false
  // after `time` has passed.
  bool AwaitMessages(int count, std::chrono::seconds time) const;
  // Waits for the messages in flight, and ends the calls.
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

// Captures standard error during its lifetime.
class ErrorTap {
 public:
  ErrorTap();
  ~ErrorTap();
  // Returns the output captured so far. The destructor copies the output to the
  // test's own.
  std::string Text() const;

 private:
  int original_;
  int file_;
};

// Counts this process's objects in the kernel's RDMA subsystem, by kind.
// Excludes memory windows, which the kernel does not count.
struct RdmaObjects {
  RdmaObjects();
  std::string text;  // "cm_id 1, cq 2, mr 6, pd 2, qp 1, srq 1"
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_VERBS_TRAFFIC_H_
