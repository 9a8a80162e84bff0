// Tests peers that send wrong messages: ranks with the right token, whose
// numbers have any value, and strangers.

#include <algorithm>
#include <cstdint>
#include <functional>
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
  message.from = (*random)() % 4 == 0 ? AnyNumber32(random) : (*random)() % 3;
  message.key = {AnyNumber(random), AnyNumber(random), AnyNumber32(random)};
  message.words = {AnyNumber(random), AnyNumber(random)};
  message.fault = static_cast<Fault>((*random)() % 8);
  message.culprit =
      (*random)() % 4 == 0 ? AnyNumber32(random) : (*random)() % 3;
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

TEST(HostileLedger, EventsOfAnyNumbersEndTheGroupAtMost) {
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

// A connection to a rank, by somebody who has all addresses.
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

  // Sends a message, and returns the answer.
  absl::Status Ask(const Message& message, size_t bytes = 0) {
    rpc::Request request;
    request.method = "m";
    request.metadata = Encode(message);
    request.payload =
        memory::Payload(*memory::CopyBytes(std::vector<uint8_t>(bytes)));
    std::promise<absl::Status> answer;
    client_->Call(std::move(request),
                  [&](const absl::StatusOr<rpc::Response>& got) {
                    answer.set_value(got.status());
                  });
    return answer.get_future().get();
  }
  absl::Status Introduce(uint32_t rank,
                         const std::vector<std::string>& addresses) {
    Message hello;
    hello.from = rank;
    hello.text = Digest(addresses);
    return Ask(hello);
  }

  // Sends messages with any numbers.
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

// Runs `attack` on ranks 0 and 1, which form a group whose rank 2 is the
// attacker. Each rank has its own connection with the attacker, over which the
// attacker has introduced itself.
void RunWithAttacker(
    uint64_t seed,
    const std::function<void(NetGroup* group, Attacker* attacker)>& attack) {
  Team team = OpenTeam(3, Over({Fabric::kTcp}));
  const std::vector<std::string> addresses = team.addresses;
  const std::unique_ptr<Listener> own = std::move(team.listeners[2]);
  team.listeners.pop_back();
  own->Admit(std::make_shared<Ledger>(2, 3, progress::PollingMode::kEvent),
             Digest(addresses));
  std::vector<std::unique_ptr<Attacker>> attackers;
  for (uint64_t rank = 0; rank < 2; ++rank) {
    attackers.push_back(std::make_unique<Attacker>(addresses[rank], seed++));
  }
  auto introduced = std::async(std::launch::async, [&] {
    for (const auto& attacker : attackers) {
      EXPECT_EQ(attacker->Introduce(2, addresses), absl::OkStatus());
    }
  });
  RunRanks(std::move(team), {}, [&](NetGroup* group) {
    attack(group, attackers[group->rank()].get());
  });
  introduced.get();
}

// Exchanges letters of ranks 0 and 1 while an attacker sends messages. A wrong
// result would need a message with the right call, number and size.
absl::Status ExchangeLetters(NetGroup* group, uint64_t seed) {
  Random random(seed);
  const int peer = 1 - group->rank();
  absl::Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) {
    const auto count = static_cast<int64_t>(AnyNumber(&random) % 16'000);
    const std::vector<int32_t> own(count, group->rank() + 1);
    std::vector<int32_t> theirs(count);
    const absl::Time begun = absl::Now();
    status = group->Send(tensor::DType::kInt32, own.data(), count, peer, 7);
    if (status.ok()) {
      status =
          group->Receive(tensor::DType::kInt32, theirs.data(), count, peer, 7);
    }
    EXPECT_LT(absl::Now() - begun, absl::Seconds(10));
    if (status.ok()) {
      EXPECT_EQ(theirs, std::vector<int32_t>(count, peer + 1));
    }
  }
  return status;
}

// Tests that a rank does not wait for the others once the group has ended.
TEST(HostileMember, EndsAGroupThatForms) {
  Team team = OpenTeam(3, Over({Fabric::kTcp}));
  auto formed = std::async(std::launch::async, [&] {
    return NetGroup::Form(std::move(team.listeners[0]), team.addresses, {})
        .status();
  });
  Attacker attacker(team.addresses[0], 0);
  EXPECT_EQ(attacker.Introduce(2, team.addresses), absl::OkStatus());
  Message message;
  message.kind = Message::Kind::kFailure;
  message.from = 2;
  message.fault = Fault::kAborted;
  message.culprit = 2;
  // Rank 0 may be gone before its answer arrives.
  const absl::Status answer = attacker.Ask(message);
  EXPECT_TRUE(answer.ok() || absl::IsUnavailable(answer)) << answer;
  EXPECT_EQ(formed.get().message(),
            "rank 2 aborted the group, as rank 2 reports");
}

TEST(HostileMember, EndsTheGroupOrChangesNothing) {
  Random random(ps::optim::NewSeed());
  const absl::Time end = absl::Now() + kBudget;
  int ended = 0;
  for (int runs = 0; absl::Now() < end || ended == 0; ++runs) {
    ASSERT_LT(runs, 10'000) << "the messages reach nobody";
    const uint64_t seed = random();
    Meet done(2);
    RunWithAttacker(seed, [&](NetGroup* group, Attacker* attacker) {
      attacker->Send(1 + static_cast<int>(seed % 30));
      const absl::Status status = ExchangeLetters(group, seed);
      if (group->rank() == 0 && !status.ok()) ++ended;
      done.Wait();
    });
  }
}

// Tests somebody who has the addresses, but has not come as a rank.
TEST(HostileMember, WithoutARankChangesNothing) {
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
      EXPECT_EQ(ExchangeLetters(group, seed), absl::OkStatus());
      done.Wait();
    });
  }
}

TEST(HostileMember, CannotSpeakForAnotherRank) {
  Meet done(2);
  RunWithAttacker(0, [&](NetGroup* group, Attacker* attacker) {
    const auto other = static_cast<uint32_t>(1 - group->rank());
    for (const auto kind : {Message::Kind::kPart, Message::Kind::kNotice,
                            Message::Kind::kFailure, Message::Kind::kLeave}) {
      Message message;
      message.kind = kind;
      message.from = other;
      message.fault = Fault::kDied;
      const absl::Status answer = attacker->Ask(message);
      EXPECT_EQ(answer.code(), absl::StatusCode::kPermissionDenied);
      EXPECT_EQ(
          answer.message(),
          absl::StrCat("rank ", other, " did not come over this connection"));
    }
    EXPECT_EQ(ExchangeLetters(group, 1), absl::OkStatus());
    done.Wait();
  });
}

// Tests that a member cannot take the rank of one that has not come yet.
TEST(HostileMember, CannotComeTwice) {
  Team team = OpenTeam(3, Over({Fabric::kTcp}));
  team.listeners[0]->Admit(
      std::make_shared<Ledger>(0, 3, progress::PollingMode::kEvent),
      Digest(team.addresses));
  Attacker first(team.addresses[0], 0), second(team.addresses[0], 0);
  EXPECT_EQ(first.Introduce(2, team.addresses), absl::OkStatus());
  EXPECT_EQ(second.Introduce(2, team.addresses).message(),
            "rank 2 has come already");
  EXPECT_EQ(first.Introduce(1, team.addresses).message(),
            "another rank has come over this connection");
  EXPECT_EQ(second.Introduce(0, team.addresses).message(),
            "rank 0 has come already");
  EXPECT_EQ(second.Introduce(1, team.addresses), absl::OkStatus());
}

TEST(HostileMember, ThatSendsTooMuchAtOnceIsRefused) {
  Meet done(2);
  RunWithAttacker(0, [&](NetGroup* group, Attacker* attacker) {
    Message message;
    message.from = 2;
    message.kind = Message::Kind::kPart;
    message.key.number = 1;
    EXPECT_EQ(attacker->Ask(message, kMaxPartBytes + 1).code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(attacker->Ask(message, kMaxPartBytes), absl::OkStatus());
    message.kind = Message::Kind::kNotice;
    EXPECT_EQ(attacker->Ask(message, 1).message(),
              "a rank's message has elements");
    message.kind = Message::Kind::kFailure;
    message.culprit = UINT32_MAX;
    EXPECT_EQ(attacker->Ask(message).message(), "there is no rank 4294967295");
    EXPECT_EQ(ExchangeLetters(group, 1), absl::OkStatus());
    done.Wait();
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
