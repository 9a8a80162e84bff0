#include "tests/transport/session/tuning_test_util.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace penstock {
namespace session {
namespace {

constexpr uint32_t kStream = 1;
constexpr size_t kMaxBytes = 4 * 1024 * 1024;
constexpr uint64_t kNever = UINT64_MAX;

}  // namespace

TuningSimulation::TuningSimulation() {
  fast_options_.eager_max_bytes = 12 * 1024;
  fast_options_.eager_range = {1024, 16352};
  fast_options_.read_chunk_bytes = 16 * 1024;
  fast_options_.read_chunk_range = {4 * 1024, kMaxBytes};
  fast_options_.max_reads = 4;
  fast_options_.now_ns = [this] { return clock_.now_ns(); };
  for (Config* config : {&client_config_, &server_config_}) {
    config->tuning.now_ns = [this] { return clock_.Read(); };
  }
  bytes_ = memory::AllocateBlock(kMaxBytes).value();
  std::fill(bytes_.span().begin(), bytes_.span().end(), 'p');
}

void TuningSimulation::Begin(const Speed& to_server, const Speed& to_client) {
  OpenWithPath();
  SetSpeed(kClient, to_server);
  SetSpeed(kServer, to_client);
  client_->Open(kStream);
  RunInTime();
  peer(kServer).stream(kStream).Take();
}

void TuningSimulation::SetSpeed(Side from, const Speed& speed) {
  speeds_[static_cast<int>(from)] = speed;
  fast().SetSpeed(from, speed);
}

void TuningSimulation::RunInTime() {
  for (Run(); fast().NextDue() != kNever; Run()) {
    clock_.AdvanceTo(fast().NextDue());
  }
}

void TuningSimulation::Disturb(int message) {
  for (Side from : {kClient, kServer}) {
    Speed speed = speeds_[static_cast<int>(from)];
    speed.latency_ns *= RandomFactor(1 / noise_, noise_);
    speed.ns_per_byte *= RandomFactor(1 / noise_, noise_);
    if (delayed_ > 0 && message % delayed_ == 0) speed.latency_ns *= 100;
    fast().SetSpeed(from, speed);
  }
}

void TuningSimulation::SendOne(Side from, size_t size) {
  const bool is_eager = size <= eager(from);
  const uint64_t cost =
      is_eager ? costs_.copy_ns_per_byte * size : costs_.announce_ns;
  const memory::Payload payload(bytes_.AsBytes().Part(0, size));
  clock_.Spend(cost, [&] {
    EXPECT_TRUE(peer(from)->output().SendMessage(kStream, payload, false));
  });
  RunInTime();
  const Side to = from == kClient ? kServer : kClient;
  EXPECT_EQ(peer(to).stream(kStream).Take().size(), 1u);
  peer(to)->input().Consumed(kStream);
  RunInTime();
}

Changes TuningSimulation::Send(Side from, int count, size_t least,
                               size_t most) {
  const Side to = from == kClient ? kServer : kClient;
  Changes changes;
  for (int i = 0; i < count; ++i) {
    const uint64_t chunk_before = chunk(to);
    const uint64_t eager_before = eager(from);
    if (noise_ > 1 || delayed_ > 0) Disturb(i);
    SendOne(from, Random(least, most));
    changes.chunk += chunk(to) != chunk_before;
    changes.eager += eager(from) != eager_before;
  }
  return changes;
}

int TuningSimulation::SendWithoutPause(Side from, int count, size_t least,
                                       size_t most) {
  const Side to = from == kClient ? kServer : kClient;
  const auto send = [&] {
    const memory::Payload payload(
        bytes_.AsBytes().Part(0, Random(least, most)));
    peer(from)->output().SendMessage(kStream, payload, false);
    --count;
  };
  int changes = 0;
  uint64_t before = chunk(to);
  StreamRecorder& receiver = peer(to).stream(kStream);
  receiver.on_event = [&] {
    receiver.Take();
    peer(to)->input().Consumed(kStream);
    changes += chunk(to) != before;
    before = chunk(to);
    if (count > 0) send();
  };
  for (int i = 0; i < 4; ++i) send();
  RunInTime();
  receiver.on_event = nullptr;
  EXPECT_EQ(count, 0);
  return changes;
}

}  // namespace session
}  // namespace penstock
