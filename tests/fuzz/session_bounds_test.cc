// Tests the cost of frames for a session, with numbers of any size, while the
// application consumes, refuses and cancels randomly.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/fuzz/bounds.h"
#include "tests/fuzz/hostile_peer.h"
#include "tests/fuzz/session_steps.h"
#include "tests/fuzz/victim.h"
#include "transport/fabric/fake/link.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fuzz {
namespace {

using fabric::fake::Link;
using fabric::fake::LinkOptions;
using fabric::fake::Side;
using wire::FrameType;

// The number of streams in use: one more than the victim accepts at the same
// time.
constexpr uint32_t kStreams = 5;
// Limits the victim's memory. Messages of 256 KiB on four streams count twice,
// because abandoned reads keep their memory for some time. The remainder is for
// memory that the test itself exposes.
constexpr uint64_t kHeldBudget = 4 * 1024 * 1024;
// Limits the session's output per step: a constant, plus a multiple of the
// peer's bytes. The application's messages are added, and may be sent later.
constexpr uint64_t kSaidPerStep = 2 * 1024;
constexpr uint64_t kSaidPerByte = 8;

LinkOptions Options(bool is_lifeline, bool can_load) {
  LinkOptions options;
  options.is_lifeline = is_lifeline;
  options.can_load = can_load;
  return options;
}

// Draws payloads with independent random numbers; many are valid.
class Payloads {
 public:
  Payloads(Random* random, HostilePeer* peer) : random_(random), peer_(peer) {}

  std::string Of(FrameType type) {
    switch (type) {
      case FrameType::kHello:
        return Hello();
      case FrameType::kAnnounce:
        return Announcement();
      case FrameType::kRelease:
      case FrameType::kPing:
      case FrameType::kPong:
        return random_->Field<uint64_t>();
      case FrameType::kPathOffered:
        return std::string(random_->Mostly<uint8_t>(16), 't');
      default:
        return random_->Text(wire::kMaxFramePayload);
    }
  }

 private:
  std::string Hello() {
    const auto token = random_->Mostly<uint16_t>(random_->OneIn(2) ? 16 : 0);
    const auto offers = random_->Mostly<uint8_t>(1);
    std::string hello = Number(token) + std::string(token, 't') +
                        random_->Field<uint32_t>() +
                        random_->Field<uint32_t>() + Number(offers);
    for (int i = 0; i < offers; ++i) {
      const auto name = random_->Mostly<uint8_t>(3);
      const auto data = random_->Mostly<uint16_t>(random_->Below(1025));
      hello += random_->Field<uint8_t>() + Number(name) +
               std::string(name, 's') + Number(data) + std::string(data, 'd');
    }
    return hello.substr(0, wire::kMaxFramePayload);
  }

  std::string Announcement() {
    const uint64_t length =
        std::max<uint64_t>(1, random_->Number(random_->OneIn(32) ? 64 : 40));
    const auto regions = random_->Mostly<uint8_t>(1 + random_->Below(2));
    std::string announcement =
        Number(random_->Mostly<uint64_t>(peer_->next_announce())) +
        Number(length) + Number(regions);
    for (int i = 0; i < regions; ++i) announcement += Region(i, length);
    return announcement.substr(0, wire::kMaxFramePayload);
  }

  std::string Region(int number, uint64_t length) {
    const auto path = random_->Mostly<uint32_t>(number == 0 ? 1 : 0);
    const uint64_t most = std::min<uint64_t>(4, 1 + length / 4096);
    const auto parts = random_->Mostly<uint16_t>(1 + random_->Below(most));
    std::string region = Number(path) + Number(parts);
    for (int i = 0; i < parts && i < 600; ++i) {
      const uint64_t part =
          i + 1 < parts ? 1 + random_->Number(64) % (length / 2 + 1) : length;
      region += random_->Field<uint64_t>() + random_->Field<uint64_t>() +
                Number(random_->Mostly<uint64_t>(part));
      length -= part;
    }
    return region;
  }

  Random* const random_;
  HostilePeer* const peer_;
};

// A victim on side B and its peer on side A.
class Attack {
 public:
  explicit Attack(Random* random)
      : random_(random),
        is_client_(random->OneIn(2)),
        lifeline_(Options(/*is_lifeline=*/true, /*can_load=*/false)),
        fast_(Options(/*is_lifeline=*/false, random->OneIn(2))),
        victim_(is_client_, random->OneIn(2) ? Manner::kRpc : Manner::kGrpc,
                lifeline_.Take(Side::kB)),
        peer_(lifeline_.Take(Side::kA)),
        payloads_(random, &peer_) {
    victim_.session().Start();
    victim_.session().Flush();
    if (!random->OneIn(8)) peer_.SendHello(is_client_);
    if (random->OneIn(2)) AddPath();
    Deliver();
  }

  ~Attack() { victim_.End(); }

  // Returns the number of steps: up to 200, or until the session's end.
  int Steps() {
    const Cost cost;
    int steps = 0;
    while (steps < 200 && !victim_.session().closed() &&
           !::testing::Test::HasFailure()) {
      ++steps;
      MakeStep(cost);
    }
    return steps;
  }

 private:
  void MakeStep(const Cost& cost) {
    const uint64_t sent = peer_.sent_bytes();
    const uint64_t said = peer_.received_bytes();
    const Cost cost_of_step;
    const char* const step = Take();
    Deliver();
    const uint64_t step_bytes = peer_.sent_bytes() - sent;
    ASSERT_TRUE(cost_of_step.IsWithin(step_bytes, kHeldBudget)) << step;
    ASSERT_TRUE(cost.IsWithin(peer_.sent_bytes(), kHeldBudget)) << step;
    const uint64_t may_say = kSaidPerStep + kSaidPerByte * step_bytes;
    const uint64_t says = peer_.received_bytes() - said;
    const uint64_t more = says - std::min(says, may_say);
    ASSERT_LE(more, to_say_) << step << " of " << step_bytes << " bytes";
    to_say_ -= more;
  }

  // Returns the name of the step.
  const char* Take() {
    const uint64_t kind = random_->Below(16);
    if (kind < 7) {
      SendFrame();
      return "a frame";
    }
    const std::string numbers = random_->Text(16) + std::string(16, '\1');
    Input input(reinterpret_cast<const uint8_t*>(numbers.data()),
                numbers.size());
    if (kind < 9) {
      peer_.Take(kind == 7 ? kAnnounced : kLong, &input);
      return "a message that can be read";
    }
    if (kind == 9 && random_->OneIn(8)) {
      to_say_ += peer_.received_bytes();  // unacknowledged frames are resent
      fast_.Drop();
    }
    UseApplication();
    return "the application";
  }

  void SendFrame() {
    constexpr FrameType kTypes[] = {FrameType::kHeaders,  FrameType::kHeaders,
                                    FrameType::kMessage,  FrameType::kAnnounce,
                                    FrameType::kAnnounce, FrameType::kAnnounce,
                                    FrameType::kCredit,   FrameType::kRelease};
    wire::FrameHeader header;
    header.type = kTypes[random_->Below(8)];
    if (random_->OneIn(8)) header.type = TypeFrom(FrameType::kHeaders, 12);
    if (random_->OneIn(64)) header.type = TypeFrom(FrameType::kHello, 6);
    if (random_->OneIn(64)) header.flags = random_->Number(8);
    if (header.type == FrameType::kHeaders && random_->OneIn(2)) ++last_stream_;
    header.stream = random_->OneIn(64) ? random_->Number(32) : AnyStream();
    header.aux = random_->Number(32);
    // Draws wrong numbers rarely, because a wrong number ends most sessions.
    if (random_->OneIn(64)) header.sequence = random_->Number(64);
    if (random_->OneIn(64)) header.ack = random_->Number(64);
    const int path = random_->Below(2);
    peer_.Send(path, header, payloads_.Of(header.type));
  }

  FrameType TypeFrom(FrameType first, uint64_t count) {
    return static_cast<FrameType>(static_cast<uint64_t>(first) +
                                  random_->Below(count));
  }

  uint32_t AnyStream() {
    return last_stream_ - random_->Below(std::min(last_stream_, kStreams));
  }

  void UseApplication() {
    if (is_client_ && random_->OneIn(8)) ++last_stream_;
    constexpr Step kAsks[] = {kAttach,  kAttach,       kWant,
                              kConsume, kConsume,      kConsume,
                              kConsume, kSendHeaders,  kSendMessage,
                              kDetach,  kSendTrailers, kSendReset};
    const Step step = kAsks[random_->Below(12)];
    const auto bytes = static_cast<uint16_t>(random_->Number(16));
    const std::string numbers = Number<uint8_t>(AnyStream()) + Number(bytes);
    Input input(reinterpret_cast<const uint8_t*>(numbers.data()),
                numbers.size());
    victim_.Take(step, &input);
    if (step == kSendMessage) to_say_ += 2 * uint64_t{bytes};
  }

  void AddPath() {
    peer_.AddFast(fast_.Take(Side::kA));
    victim_.session().path().Add("shm", fast_.Take(Side::kB));
    victim_.session().Flush();
    peer_.SendPathReady();
  }

  void Deliver() {
    constexpr int kForEver = 100 * 1000;
    int steps = 0;
    for (; steps < kForEver && (lifeline_.Step() || fast_.Step()); ++steps) {
      victim_.session().Flush();
    }
    ASSERT_LT(steps, kForEver) << "the two answer one another for ever";
  }

  Random* const random_;
  const bool is_client_;
  Link lifeline_;
  Link fast_;
  Victim victim_;
  HostilePeer peer_;
  Payloads payloads_;
  uint32_t last_stream_ = 1;
  uint64_t to_say_ = 0;  // bytes sent by the application
};

TEST(SessionBounds, EachFrameCostsInProportionToItsBytes) {
  Random random;
  int runs = 0;
  uint64_t steps = 0;
  for (; random.GoesOn() && !HasFailure(); ++runs) {
    steps += Attack(&random).Steps();
  }
  std::printf("%d sessions, %d steps\n", runs, static_cast<int>(steps));
}

}  // namespace
}  // namespace fuzz
}  // namespace penstock
