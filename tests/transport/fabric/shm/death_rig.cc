#include "tests/transport/fabric/shm/death_rig.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"

// Returns the options of ThreadSanitizer, which calls this function. Without
// this option, ThreadSanitizer kills a forked child that starts threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace fabric {
namespace shm {

bool SendPart(Endpoint* from, const RemoteRegion& region) {
  const auto* bytes = reinterpret_cast<const char*>(&region[0]);
  return Send(from, absl::string_view(bytes, sizeof region[0]));
}

RemotePart PartIn(const std::string& packet) {
  RemotePart part;
  EXPECT_EQ(packet.size(), sizeof part);
  if (packet.size() == sizeof part) memcpy(&part, packet.data(), sizeof part);
  return part;
}

DyingPeer::DyingPeer(const Options& options, const std::string& offer,
                     const std::string& token)
    : fabric_(options) {
  Outcome outcome;
  auto connect = fabric_.Connect(offer, token, outcome.callback());
  auto connected = outcome.Take();
  if (!connected.ok()) _exit(2);
  endpoint_ = *std::move(connected);
}

void DyingPeer::Serve(
    const std::function<bool(const memory::Payload&)>& is_right,
    const memory::Payload& own) {
  endpoint_->Start(&events_);
  events_.on_packet = [&] {
    auto bytes = endpoint_->Load({PartIn(events_.packets.back())});
    if (!bytes.ok()) _exit(3);
    if (!is_right(*bytes)) _exit(4);
    held_ = *std::move(bytes);
    auto exposure = endpoint_->Expose(own, 1);
    if (!exposure.ok()) _exit(5);
    if (!SendPart(endpoint_.get(), exposure->region)) _exit(6);
  };
  (void)WaitUntil([&] {
    endpoint_->Poll();
    return !events_.broken.empty();
  });
  if (events_.broken.empty()) _exit(7);
}

void DyingPeer::Release() {
  held_ = memory::Payload();
  endpoint_.reset();
}

void DeathRig::TearDown() {
  if (peer_ > 0) Kill();
  held_ = memory::Payload();
  endpoint_.reset();
  fabric_.reset();
}

void DeathRig::Start(const Options& options,
                     void (*run_peer)(const std::string& offer,
                                      const std::string& token)) {
  fabric_ = absl::make_unique<ShmFabric>(options);
  const std::string offer = fabric_->Offer().value();
  const std::string token = NewTestToken();
  Outcome outcome;
  auto listen = fabric_->Listen(token, outcome.callback());
  peer_ = fork();
  ASSERT_GE(peer_, 0);
  if (peer_ == 0) {
    run_peer(offer, token);
    _exit(1);
  }
  auto endpoint = outcome.Take();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  endpoint_ = *std::move(endpoint);
  endpoint_->Start(&events_);
}

void DeathRig::Exchange(const memory::Payload& payload) {
  const auto exposure = endpoint_->Expose(payload, 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  lent_part_ = exposure->region[0];
  events_.packets.clear();
  ASSERT_TRUE(SendPart(endpoint_.get(), exposure->region));
  ASSERT_TRUE(WaitUntil([this] {
    endpoint_->Poll();
    return !events_.packets.empty();
  }));
  held_part_ = PartIn(events_.packets[0]);
  auto bytes = endpoint_->Load({held_part_});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  held_ = *std::move(bytes);
}

bool DeathRig::PollUntilBroken() {
  return WaitUntil([this] {
    endpoint_->Poll();
    return !events_.broken.empty();
  });
}

void DeathRig::Kill() {
  kill(peer_, SIGKILL);
  (void)WaitForPeer();
}

int DeathRig::WaitForPeer() {
  int status = -1;
  EXPECT_EQ(waitpid(peer_, &status, 0), peer_);
  peer_ = 0;
  return status;
}

void DeathRig::DropInForkedCopy(const std::function<bool()>& is_intact) {
  const pid_t copy = fork();
  ASSERT_GE(copy, 0);
  if (copy == 0) {
    held_ = memory::Payload();
    endpoint_.reset();
    fabric_.reset();
    _exit(is_intact() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(copy, &status, 0), copy);
  EXPECT_EQ(status, 0);
  endpoint_->Poll();
  EXPECT_TRUE(events_.broken.empty());
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
