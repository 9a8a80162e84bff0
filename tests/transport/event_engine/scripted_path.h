// A path that ends when the test says so.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_SCRIPTED_PATH_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_SCRIPTED_PATH_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/event_engine/stream/packet.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace event_engine {

// The state of the path. The test and the path share the state.
struct Script {
  Script() : test(std::this_thread::get_id()) {}

  const std::thread::id test;
  std::atomic<bool> is_drained{true};
  // The number of paths that the peer has ended.
  std::atomic<int> ended_paths{0};
  // If true, only the test's thread notices the end of a path.
  std::atomic<bool> only_test_notices{false};
  // If true, the peer sends an invalid packet again and again.
  std::atomic<bool> has_nonsense{false};
  std::atomic<int> paths{0};      // made so far
  std::atomic<int> doorbell{-1};  // of the last path
  std::atomic<int> destroyed_paths{0};
};

// A path whose peer sends its greeting, and acknowledges nothing.
class ScriptedPath final : public fabric::Endpoint {
 public:
  explicit ScriptedPath(std::shared_ptr<Script> script)
      : script_(std::move(script)),
        number_(++script_->paths),
        doorbell_(eventfd(0, EFD_NONBLOCK)) {
    capabilities_.max_packet_bytes = 16 * 1024;
    script_->doorbell = doorbell_;
  }
  ~ScriptedPath() override {
    close(doorbell_);
    ++script_->destroyed_paths;
  }

  const fabric::Capabilities& capabilities() const override {
    return capabilities_;
  }
  std::string Describe() const override { return "scripted"; }
  void Start(fabric::EndpointEvents* events) override { events_ = events; }
  bool Send(absl::Span<const uint8_t>) override { return true; }
  bool IsDrained() override { return script_->is_drained; }
  bool Poll() override {
    if (!has_greeted_.exchange(true)) return Deliver(EncodeHead(Packet()));
    if (script_->has_nonsense) return Deliver("nonsense");
    if (script_->ended_paths < number_ || !Notices() ||
        std::exchange(is_broken_, true)) {
      return false;
    }
    events_->OnBroken(absl::UnavailableError("the peer has ended the path"));
    return true;
  }
  bool HasInput() const override {
    return !has_greeted_ || script_->has_nonsense;
  }
  std::vector<int> wakeup_fds() const override { return {doorbell_}; }
  void SetArmed(bool) override {}
  bool TakeDoorbellRequest() override { return false; }
  void RingDoorbell() override {}

  absl::StatusOr<fabric::Exposure> Expose(const memory::Payload&,
                                          size_t) override {
    return absl::ResourceExhaustedError("no regions");
  }
  void Withdraw(const fabric::RemoteRegion&) override {}
  void Read(const fabric::RemotePart&, uint64_t, absl::Span<uint8_t>,
            uint64_t cookie) override {
    events_->OnReadDone(cookie, absl::UnimplementedError("no regions"));
  }

 private:
  bool Notices() const {
    return !script_->only_test_notices ||
           std::this_thread::get_id() == script_->test;
  }
  bool Deliver(const std::string& packet) {
    events_->OnPacket(
        {reinterpret_cast<const uint8_t*>(packet.data()), packet.size()});
    return true;
  }

  const std::shared_ptr<Script> script_;
  const int number_;  // from 1 on
  const int doorbell_;
  fabric::Capabilities capabilities_;
  fabric::EndpointEvents* events_ = nullptr;
  std::atomic<bool> has_greeted_{false};
  bool is_broken_ = false;
};

// A fabric that connects at once, by scripted paths.
class ScriptedFabric final : public fabric::Fabric {
 public:
  explicit ScriptedFabric(std::shared_ptr<Script> script)
      : script_(std::move(script)) {}

  absl::string_view name() const override { return "verbs"; }
  absl::StatusOr<std::string> Offer() override { return "offer"; }
  std::unique_ptr<fabric::PendingConnect> Listen(
      absl::string_view, fabric::ConnectCallback) override {
    return nullptr;
  }
  std::unique_ptr<fabric::PendingConnect> Connect(
      absl::string_view, absl::string_view,
      fabric::ConnectCallback done) override {
    done(std::make_unique<ScriptedPath>(script_));
    return nullptr;
  }

 private:
  const std::shared_ptr<Script> script_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_SCRIPTED_PATH_H_
