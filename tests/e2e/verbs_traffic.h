// Calls that run while something happens to the devices under them.

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

// Two threads of unary calls and two streams, to an EchoService, until Stop().
// A stream has many messages under way. What is lost, repeated, out of order or
// another byte is a failure of the running test, as is a call that fails.
class Traffic {
 public:
  // Messages have these sizes, in turn.
  Traffic(std::shared_ptr<grpc::Channel> channel, std::vector<size_t> sizes);
  ~Traffic() { Stop(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Whether each thread gets as many messages back before the time is up.
  bool AwaitMessages(int count, std::chrono::seconds time) const;
  // Lets what is under way come back, and ends the calls.
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

// What comes to standard error, while it lives.
class ErrorTap {
 public:
  ErrorTap();
  ~ErrorTap();
  // So far. It also still appears in the test's own output, at the end.
  std::string Text() const;

 private:
  int original_;
  int file_;
};

// How many objects the kernel's RDMA subsystem has for this process, by kind.
// It counts no memory windows.
struct RdmaObjects {
  RdmaObjects();
  std::string text;  // "cm_id 1, cq 2, mr 6, pd 2, qp 1, srq 1"
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_VERBS_TRAFFIC_H_
