// Tests random traffic over stripes whose bytes arrive in random order. Each
// stripe goes through a relay that moves random numbers of bytes at random
// times, so any stripe may be far ahead of another.
//
// SEED=N in the environment repeats one run.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/stripes/endpoint.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

using Random = std::mt19937_64;

// Returns a number from 1 to `most`, log-uniform.
size_t Draw(Random* random, size_t most) {
  const double exponent = std::uniform_real_distribution<double>(0, 1)(*random);
  const double value = std::exp(exponent * std::log(most + 1.0));
  return std::min(most, std::max<size_t>(1, static_cast<size_t>(value)));
}

std::string RandomText(Random* random, size_t size) {
  std::string text(size, '\0');
  for (char& byte : text) byte = static_cast<char>((*random)());
  return text;
}

memory::Payload PayloadOf(const std::string& text) {
  memory::Block block = memory::AllocateBlock(text.size()).value();
  text.copy(reinterpret_cast<char*>(block.data.get()), text.size());
  return memory::Payload(block.AsBytes());
}

// A pair of sockets between two ends, with a relay in the middle.
struct Relay {
  base::UniqueFd inner[2];
  std::string left[2];  // received from this side, and not yet sent

  // Moves some bytes from `side` to the other side.
  void Move(int side, Random* random) {
    char buffer[64 * 1024];
    const bool is_whole = (*random)() % 2 == 0;
    const size_t most = is_whole ? sizeof buffer : Draw(random, sizeof buffer);
    const ssize_t got = recv(inner[side].get(), buffer, most, MSG_DONTWAIT);
    if (got > 0) left[side].append(buffer, static_cast<size_t>(got));
    if (left[side].empty()) return;
    const ssize_t sent =
        send(inner[1 - side].get(), left[side].data(),
             is_whole ? left[side].size() : Draw(random, left[side].size()),
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) left[side].erase(0, static_cast<size_t>(sent));
  }
  void Cut() {
    for (base::UniqueFd& fd : inner) fd.Reset();
  }
};

// One end, and its model: packets in order, and reads with the right bytes.
class Party : public EndpointEvents {
 public:
  struct Read {
    std::string into;
    std::string expected;
  };

  void Begin(std::unique_ptr<Endpoint> end) {
    end_ = std::move(end);
    end_->Start(this);
  }
  Endpoint* end() { return end_.get(); }
  bool broken() const { return broken_; }
  size_t reads() const { return reads_.size(); }
  size_t finished() const { return finished_; }

  void SendPacket(Party* to, const std::string& packet) {
    if (broken_ || waits_) return;
    waits_ = !end_->Send(
        {reinterpret_cast<const uint8_t*>(packet.data()), packet.size()});
    if (!waits_) to->expected_.push_back(packet);
  }
  void StartRead(const RemotePart& part, uint64_t offset,
                 const std::string& expected) {
    const uint64_t cookie = ++last_cookie_;
    Read& read = reads_[cookie];
    read.expected = expected;
    read.into.assign(expected.size(), '\0');
    end_->Read(part, offset,
               {reinterpret_cast<uint8_t*>(&read.into[0]), read.into.size()},
               cookie);
  }
  bool HasAllPackets() const { return received_ == expected_.size(); }

  void OnPacket(absl::Span<const uint8_t> packet) override {
    ASSERT_FALSE(broken_);
    ASSERT_LT(received_, expected_.size());
    EXPECT_EQ(std::string(packet.begin(), packet.end()), expected_[received_]);
    ++received_;
  }
  void OnWritable() override {
    EXPECT_TRUE(waits_);
    waits_ = false;
  }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    ASSERT_FALSE(broken_);
    const auto it = reads_.find(cookie);
    ASSERT_TRUE(it != reads_.end()) << "ended twice";
    if (status.ok()) {
      EXPECT_TRUE(it->second.into == it->second.expected);
      ++finished_;
    } else {
      EXPECT_TRUE(may_fail_) << status;
    }
    reads_.erase(it);
  }
  void OnDoorbell() override { ADD_FAILURE(); }
  void OnBroken(const absl::Status&) override {
    EXPECT_FALSE(broken_) << "twice";
    EXPECT_TRUE(may_fail_);
    EXPECT_TRUE(reads_.empty());
    broken_ = true;
  }
  void MayFail() { may_fail_ = true; }

 private:
  std::unique_ptr<Endpoint> end_;
  std::vector<std::string> expected_;
  size_t received_ = 0;
  bool waits_ = false;
  bool may_fail_ = false;
  bool broken_ = false;
  uint64_t last_cookie_ = 0;
  size_t finished_ = 0;
  std::map<uint64_t, Read> reads_;
};

class Traffic {
 public:
  explicit Traffic(uint64_t seed) : random_(seed) {
    const size_t count = 2 + random_() % 5;
    std::vector<base::UniqueFd> sockets[2];
    for (size_t i = 0; i < count; ++i) {
      relays_.emplace_back();
      for (int side : {0, 1}) {
        int pair[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        sockets[side].emplace_back(pair[0]);
        relays_.back().inner[side] = base::UniqueFd(pair[1]);
      }
    }
    for (int side : {0, 1}) {
      parties_[side].Begin(
          StripesEndpoint::Create(std::move(sockets[side])).value());
    }
  }

  void Go() {
    const int steps = static_cast<int>(Draw(&random_, 1000));
    for (int i = 0; i < steps; ++i) Step();
    if (random_() % 3 == 0) {
      for (Party& party : parties_) party.MayFail();
      relays_[random_() % relays_.size()].Cut();
      Drain([this] { return parties_[0].broken() && parties_[1].broken(); });
      return;
    }
    Drain([this] {
      return parties_[0].reads() + parties_[1].reads() == 0 &&
             parties_[0].HasAllPackets() && parties_[1].HasAllPackets();
    });
  }
  size_t finished() const {
    return parties_[0].finished() + parties_[1].finished();
  }

 private:
  void Step() {
    const int side = static_cast<int>(random_() % 2);
    Party& party = parties_[side];
    Party& other = parties_[1 - side];
    switch (random_() % 8) {
      case 0:
        return party.SendPacket(
            &other, RandomText(&random_, Draw(&random_, 60 * 1024)));
      case 1:
        return Share(&party, &other);
      case 2:
        party.end()->Poll();
        return;
      default:
        return relays_[random_() % relays_.size()].Move(side, &random_);
    }
  }
  // Exposes a message, and reads all of it in chunks at the other end.
  void Share(Party* from, Party* to) {
    const std::string text = RandomText(&random_, Draw(&random_, 512 * 1024));
    const Exposure exposure =
        from->end()->Expose(PayloadOf(text), /*max_parts=*/1).value();
    const bool is_batch = random_() % 2 == 0;
    if (is_batch) to->end()->BeginBatch();
    for (size_t offset = 0; offset < text.size();) {
      const size_t size =
          std::min(text.size() - offset, Draw(&random_, text.size()));
      to->StartRead(exposure.region[0], offset, text.substr(offset, size));
      offset += size;
    }
    if (is_batch) to->end()->EndBatch();
  }
  template <typename Done>
  void Drain(Done done) {
    for (int i = 0; !done(); ++i) {
      ASSERT_LT(i, 1000 * 1000) << "stands still" << State();
      ASSERT_FALSE(testing::Test::HasFailure());
      const int side = static_cast<int>(random_() % 2);
      if (random_() % 4 == 0) {
        // Polls only for input, as an owner does.
        if (parties_[side].end()->HasInput()) parties_[side].end()->Poll();
      } else {
        relays_[random_() % relays_.size()].Move(side, &random_);
      }
    }
  }

  std::string State() {
    std::string text;
    for (Party& party : parties_) {
      absl::StrAppend(&text, "; broken ", party.broken(), ", reads ",
                      party.reads(), ", all packets ", party.HasAllPackets(),
                      ", input ", party.end()->HasInput());
    }
    return text;
  }

  Random random_;
  std::vector<Relay> relays_;
  Party parties_[2];
};

TEST(StripesRandom, BytesArriveWhateverTheOrderOfTheStripes) {
  uint64_t seed = std::random_device{}();
  const char* wanted = std::getenv("SEED");
  if (wanted != nullptr) seed = std::strtoull(wanted, nullptr, 10);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  size_t finished = 0;
  int runs = 0;
  do {
    SCOPED_TRACE(absl::StrCat("SEED=", seed));
    Traffic traffic(seed++);
    traffic.Go();
    finished += traffic.finished();
    ++runs;
  } while (wanted == nullptr && !HasFailure() &&
           std::chrono::steady_clock::now() < end);
  std::cout << runs << " runs, " << finished << " reads\n";
  EXPECT_TRUE(wanted != nullptr || finished > 100);
}

}  // namespace
}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
