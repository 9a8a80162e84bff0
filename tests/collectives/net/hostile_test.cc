// Tests peers that send wrong messages: ranks with the right token, whose
// numbers have any value, and strangers.

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/net/address.h"
#include "collectives/net/group.h"
#include "collectives/net/ledger.h"
#include "collectives/net/listener.h"
#include "collectives/net/message.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/ranks.h"
#include "tests/ps/optim/random_values.h"
#include "tests/transport/rpc/raw_client.h"
#include "transport/memory/bytes.h"
#include "transport/progress/spin_policy.h"
#include "transport/rpc/call.h"
#include "transport/rpc/client.h"
#include "transport/rpc/greeting.h"
#include "transport/wire/frame.h"

namespace penstock::collectives {
namespace {

using Random = std::mt19937_64;

constexpr absl::Duration kBudget = absl::Seconds(2);

// Returns a number of any magnitude, or a neighbour of a power of two.
uint64_t AnyNumber(Random* random) {
  const auto bits = (*random)() % 64;
  switch ((*random)() % 3) {
    case 0:
      return (*random)() % 4;
    case 1:
      return (uint64_t{1} << bits) + (*random)() % 3 - 1;
    default:
      return (*random)() >> bits;
  }
}

uint32_t AnyNumber32(Random* random) {
  return static_cast<uint32_t>(AnyNumber(random));
}

std::string AnyText(Random* random, size_t most) {
  std::string text(std::min<size_t>(AnyNumber(random), most), '\0');
  for (char& c : text) c = static_cast<char>((*random)());
  return text;
}

Message AnyMessage(Random* random) {
  Message message;
  message.kind = static_cast<Message::Kind>(1 + (*random)() % 5);
  message.from = (*random)() % 4 == 0 ? AnyNumber32(random) : (*random)() % 2;
  message.key = {AnyNumber(random), AnyNumber(random), AnyNumber32(random)};
  message.words = {AnyNumber(random), AnyNumber(random)};
  message.fault = static_cast<Fault>((*random)() % 8);
  message.culprit =
      (*random)() % 4 == 0 ? AnyNumber32(random) : (*random)() % 2;
  message.text = AnyText(random, 1024);
  return message;
}

// Returns the metadata of a call: a message, perhaps with some wrong bytes.
std::string AnyMetadata(Random* random) {
  std::string bytes = Encode(AnyMessage(random));
  if ((*random)() % 4 != 0) return bytes;
  bytes.resize(std::min<size_t>(bytes.size(), AnyNumber(random)));
  for (int i = 0; i < 3 && !bytes.empty(); ++i) {
    bytes[(*random)() % bytes.size()] = static_cast<char>((*random)());
  }
  return bytes;
}

TEST(HostileMessage, EachValueOfEachFieldIsDecoded) {
  Random random(ps::optim::NewSeed());
  for (int round = 0; round < 2000; ++round) {
    const Message sent = AnyMessage(&random);
    const auto got = DecodeMessage(Encode(sent));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->from, sent.from);
    EXPECT_EQ(got->key.channel, sent.key.channel);
    EXPECT_EQ(got->key.number, sent.key.number);
    EXPECT_EQ(got->key.part, sent.key.part);
    EXPECT_EQ(got->words, sent.words);
    EXPECT_EQ(got->culprit, sent.culprit);
    EXPECT_EQ(got->text, sent.text);
  }
}

// The ledger of rank 0 of two ranks.
class HostileLedger : public testing::Test {
 protected:
  Ledger ledger_{0, 2, progress::PollingMode::kEvent};
};

TEST_F(HostileLedger, EventsOfAnyNumbersEndTheGroupAtMost) {
  Random random(ps::optim::NewSeed());
  const absl::Time end = absl::Now() + absl::Seconds(1);
  while (absl::Now() < end) {
    Ledger ledger(0, 2, progress::PollingMode::kEvent);
    for (uint64_t i = 1; i < 100; ++i) {
      const Message any = AnyMessage(&random);
      if (any.kind == Message::Kind::kPart) {
        ledger.OnPart(1, any.key, {any.words, {}, [] {}});
      } else if (any.kind == Message::Kind::kNotice) {
        ledger.OnNotice(1, any.key.number, any.words);
      } else if (any.kind == Message::Kind::kFailure && any.culprit < 2) {
        ledger.OnFailure(1, any);
      }
      (void)ledger.Begin(i, any.words);
      (void)ledger.Take(1, any.key);
    }
    for (const char c : ledger.status().message()) {
      ASSERT_TRUE(c >= ' ' && c <= '~') << ledger.status();
    }
  }
}

// The payloads have a size, but no memory.
TEST_F(HostileLedger, AFloodOfPartsEndsTheGroupAndIsDropped) {
  constexpr uint64_t kParts = Ledger::kMostUntaken / kMaxPartBytes;
  const auto owner = std::make_shared<int>();
  uint64_t parts = 0;
  for (; ledger_.status().ok() && parts < kParts + 1; ++parts) {
    memory::Bytes bytes;
    bytes.size = kMaxPartBytes;
    bytes.owner = owner;
    ledger_.OnPart(1, {ChannelOf(1), parts + 1, 0},
                   {{}, memory::Payload(bytes), nullptr});
  }
  EXPECT_GT(parts, kParts - kParts / 100);
  EXPECT_EQ(ledger_.status().message(),
            "rank 1 sends more than 4294967296 bytes that rank 0 has not "
            "received");
  EXPECT_EQ(owner.use_count(), 1);
}

// A peer of rank 0 and 1 that has all addresses.
class Attacker {
 public:
  Attacker(const std::string& address, uint64_t seed) : random_(seed) {
    const Address parsed = *ParseAddress(address);
    rpc::Client::Options options;
    options.target = parsed.target;
    options.token = parsed.token;
    options.settings.fabrics = {Fabric::kTcp};
    client_ = *rpc::Client::Connect(options, [](const absl::Status&) {});
  }

  void Send(int calls) {
    for (int i = 0; i < calls; ++i) {
      rpc::Request request;
      request.method = "m" + AnyText(&random_, 20);
      request.metadata = AnyMetadata(&random_);
      if (random_() % 2 == 0) {
        request.payload = memory::Payload(*memory::CopyBytes(
            std::vector<uint8_t>(AnyNumber(&random_) % (600 * 1024))));
      }
      client_->Call(std::move(request),
                    [](const absl::StatusOr<rpc::Response>&) {});
    }
  }

 private:
  Random random_;
  std::unique_ptr<rpc::Client> client_;
};

// Runs operations while an attacker sends messages. A wrong result would have
// needed a message with the right call, number and size.
void RunUnderAttack(NetGroup* group, uint64_t seed) {
  Random random(seed);
  absl::Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) {
    std::vector<int32_t> data(AnyNumber(&random) % 300'000, group->rank() + 1);
    const absl::Time begun = absl::Now();
    status =
        group->AllReduce(ReduceOp::kSum, tensor::DType::kInt32, data.data(),
                         data.data(), static_cast<int64_t>(data.size()));
    EXPECT_LT(absl::Now() - begun, absl::Seconds(10));
    if (status.ok()) {
      EXPECT_EQ(data, std::vector<int32_t>(data.size(), 3));
    }
  }
}

TEST(HostileMember, EndsTheGroupOrChangesNothing) {
  Random random(ps::optim::NewSeed());
  const absl::Time end = absl::Now() + kBudget;
  while (absl::Now() < end) {
    Team team = OpenTeam(2, Over({Fabric::kTcp}));
    const std::vector<std::string> addresses = team.addresses;
    const uint64_t seed = random();
    Meet done(2);
    RunRanks(std::move(team), {}, [&](NetGroup* group) {
      Attacker attacker(addresses[group->rank()], seed + group->rank());
      attacker.Send(1 + static_cast<int>(seed % 30));
      RunUnderAttack(group, seed);
      done.Wait();
    });
  }
}

TEST(HostileMember, ThatSendsTooMuchAtOnceIsRefused) {
  Team team = OpenTeam(1, Over({Fabric::kTcp}));
  const Address address = *ParseAddress(team.addresses[0]);
  RunRanks(std::move(team), {}, [&](NetGroup* group) {
    rpc::Client::Options options;
    options.target = address.target;
    options.token = address.token;
    options.settings.fabrics = {Fabric::kTcp};
    const auto client =
        *rpc::Client::Connect(options, [](const absl::Status&) {});
    const auto ask = [&](Message::Kind kind, uint32_t culprit, size_t bytes) {
      Message message;
      message.kind = kind;
      message.culprit = culprit;
      rpc::Request request;
      request.method = "m";
      request.metadata = Encode(message);
      request.payload =
          memory::Payload(*memory::CopyBytes(std::vector<uint8_t>(bytes)));
      std::promise<absl::Status> answer;
      client->Call(std::move(request),
                   [&](const absl::StatusOr<rpc::Response>& got) {
                     answer.set_value(got.status());
                   });
      return answer.get_future().get();
    };
    EXPECT_EQ(ask(Message::Kind::kPart, 0, kMaxPartBytes + 1).code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ask(Message::Kind::kNotice, 0, 1).message(),
              "a rank's message has elements");
    EXPECT_EQ(ask(Message::Kind::kFailure, UINT32_MAX, 0).message(),
              "there is no rank 4294967295");
    EXPECT_TRUE(ask(Message::Kind::kPart, 0, kMaxPartBytes).ok());
    EXPECT_TRUE(group->Barrier().ok());
  });
}

// Sends frames of any type, stream and size. Strangers have another token.
TEST(HostileConnection, OfMembersAndStrangersHurtsNobody) {
  Random random(ps::optim::NewSeed());
  Team team = OpenTeam(2, Over({Fabric::kTcp}));
  const Address address = *ParseAddress(team.addresses[0]);
  const int port =
      std::stoi(address.target.substr(address.target.find(':') + 1));
  std::vector<std::unique_ptr<rpc::RawClient>> peers;
  for (int i = 0; i < 60; ++i) {
    peers.push_back(std::make_unique<rpc::RawClient>(port));
    rpc::RawClient& peer = *peers.back();
    const bool is_member = i % 2 == 0;
    peer.Send(rpc::EncodeGreeting(
        {wire::kOldestVersion, wire::kVersion,
         is_member ? address.token : AnyText(&random, 64)}));
    if (random() % 4 != 0) peer.SayHello();
    for (int frame = 0; frame < 20; ++frame) {
      const std::string metadata = AnyMetadata(&random);
      const bool is_odd = random() % 16 == 0;
      peer.SendFrame(
          static_cast<wire::FrameType>(is_odd ? random() : 16 + random() % 11),
          AnyNumber32(&random), is_odd ? random() : random() % 2,
          random() % 2 == 0 ? metadata : AnyText(&random, 4096));
    }
    if (random() % 2 == 0) peer.Send(AnyText(&random, 100'000));
  }
  Meet done(2);
  RunRanks(std::move(team), {}, [&](NetGroup* group) {
    EXPECT_TRUE(group->Barrier().ok());
    done.Wait();
  });
}

}  // namespace
}  // namespace penstock::collectives
