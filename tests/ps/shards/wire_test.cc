// Tests that messages between replicas are encoded and decoded without loss,
// and that hostile bytes are refused.

#include "ps/shards/wire.h"

#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "ps/shards/entry.h"
#include "tensor_service/message.h"
#include "tensor_service/tensor.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using replication::Append;
using replication::Entry;
using replication::EntryPtr;

replication::Envelope SomeEnvelope() {
  replication::Envelope envelope;
  envelope.group = {7, 8, "build", 1};
  envelope.from = {"ps1:2222", 9};
  envelope.view = 3;
  return envelope;
}

EntryPtr PushEntry(uint64_t seq) {
  auto entry = std::make_shared<Entry>();
  entry->seq = seq;
  entry->view = 2;
  entry->pushes = {{{3, 33}, 5}};
  tensor::Bundle bundle;
  bundle.tensors.push_back(Ids("rows", {1, 2}));
  bundle.tensors.push_back(Floats("rows", {2, 1}, {3, 4}));
  entry->payload = std::make_shared<PushPayload>(bundle);
  return entry;
}

Append SomeAppend() {
  Append append;
  append.envelope = SomeEnvelope();
  append.prev_seq = 10;
  append.prev_view = 2;
  append.committed = 9;
  append.complete = true;
  append.stamp = {absl::FromUnixNanos(12345), 2};
  append.lease = absl::Seconds(2);
  append.entries.push_back(PushEntry(11));
  auto join = std::make_shared<Entry>();
  join->seq = 12;
  join->view = 3;
  join->joins = WorkerId{4, 44};
  append.entries.push_back(join);
  auto lost = std::make_shared<Entry>();
  lost->seq = 13;
  lost->view = 3;
  lost->payload = std::make_shared<EventPayload>(EventPayload::Kind::kLost,
                                                 WorkerId{3, 33});
  append.entries.push_back(lost);
  append.entries.push_back(PushEntry(14));
  auto cut = std::make_shared<Entry>();
  cut->seq = 15;
  cut->view = 3;
  cut->payload =
      std::make_shared<EventPayload>(CutPoint{6, {{{2, 0}, 8}, {{3, 0}, 9}}});
  append.entries.push_back(cut);
  return append;
}

std::string Flat(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

SnapshotState SomeState() {
  SnapshotState state;
  state.id = 5;
  state.bytes = 100;
  state.checksum = 77;
  state.definition.model.tables = {DenseTable("w", {2})};
  state.definition.servers = {"a", "b"};
  state.definition.cut = CutId{60, 2, 6, {4, 5}};
  state.instance = 99;
  state.restored.clocks = {{{0, 10}, 3}};
  state.restored.version = 3;
  state.restored.floor = 2;
  MembersImage members;
  members.membership.assembled = true;
  members.membership.floor = 2;
  members.membership.lost = 1;
  members.membership.ranks = {{{0, 10}, 8, 3, 3, false, 2},
                              {{1, 11}, absl::nullopt, 1, 1, true, {}}};
  members.counted = {{{0, 10}, 2}};
  members.counts = {5, 6, 7};
  state.restored.members = members;
  return state;
}

TEST(WireTest, AppendSurvives) {
  const Append append = SomeAppend();
  const auto message = MessageIn(*ToBytes(append));
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_TRUE(message->append.has_value());
  const Append& got = *message->append;
  EXPECT_EQ(got.envelope.from, append.envelope.from);
  EXPECT_TRUE(CheckSameGroup(got.envelope.group, append.envelope.group).ok());
  EXPECT_EQ(got.envelope.view, 3u);
  EXPECT_EQ(got.stamp.sent, append.stamp.sent);
  EXPECT_EQ(got.stamp.era, 2u);
  EXPECT_EQ(got.lease, append.lease);
  EXPECT_EQ(got.committed, 9u);
  EXPECT_TRUE(got.complete);
  ASSERT_EQ(got.entries.size(), 5u);
  EXPECT_EQ(got.entries[0]->seq, 11u);
  EXPECT_EQ(got.entries[0]->pushes[0].clock, 5u);
  EXPECT_EQ(got.entries[1]->joins->incarnation, 44u);
  const auto& lost = static_cast<const EventPayload&>(*got.entries[2]->payload);
  EXPECT_EQ(lost.kind(), EventPayload::Kind::kLost);
  EXPECT_EQ(lost.worker().rank, 3u);
  const auto& push = static_cast<const PushPayload&>(*got.entries[3]->payload);
  ASSERT_EQ(push.gradients().tensors.size(), 2u);
  EXPECT_EQ(ElementsOf(push.gradients().tensors[1].tensor),
            std::vector<float>({3, 4}));
  const auto& cut = static_cast<const EventPayload&>(*got.entries[4]->payload);
  EXPECT_EQ(cut.kind(), EventPayload::Kind::kCut);
  EXPECT_EQ(cut.cut().version, 6u);
  ASSERT_EQ(cut.cut().clocks.size(), 2u);
  EXPECT_EQ(cut.cut().clocks[1].worker.rank, 3u);
  EXPECT_EQ(cut.cut().clocks[1].clock, 9u);
}

TEST(WireTest, StateSurvives) {
  const SnapshotState state = SomeState();
  const auto message = MessageIn(*ToBytes(SomeEnvelope(), state));
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_TRUE(message->restore.has_value());
  const SnapshotState& got = *message->restore;
  EXPECT_EQ(got.bytes, 100u);
  EXPECT_EQ(got.definition.run, 7u);
  EXPECT_EQ(got.definition.server, 1u);
  EXPECT_EQ(got.definition.cut->earlier_runs, std::vector<uint64_t>({4, 5}));
  EXPECT_EQ(FingerprintOf(got.definition), FingerprintOf(state.definition));
  EXPECT_EQ(got.instance, 99u);
  EXPECT_EQ(got.restored.version, state.restored.version);
  const MembershipImage& members = got.restored.members->membership;
  ASSERT_EQ(members.ranks.size(), 2u);
  EXPECT_EQ(members.ranks[0].previous, absl::make_optional<uint64_t>(8));
  EXPECT_EQ(members.ranks[0].required_from, absl::make_optional<uint64_t>(2));
  EXPECT_TRUE(members.ranks[1].has_left);
  EXPECT_FALSE(members.ranks[1].required_from.has_value());
  EXPECT_EQ(got.restored.members->counts.refused, 7u);
}

TEST(WireTest, AnswerSurvives) {
  replication::Answer answer;
  answer.envelope = SomeEnvelope();
  answer.status = absl::OutOfRangeError("missing");
  answer.held = 17;
  answer.is_empty = true;
  answer.stamp = {absl::FromUnixNanos(5), 1};
  const auto got = AnswerIn(ToBytes(answer));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->status, answer.status);
  EXPECT_EQ(got->held, 17u);
  EXPECT_TRUE(got->is_empty);
  EXPECT_EQ(got->stamp.sent, answer.stamp.sent);
}

// Changes a message's header, and expects a refusal.
void ExpectRefused(const std::function<void(v1::ReplicateHeader*)>& change) {
  tensor::Message<v1::ReplicateHeader> message;
  ASSERT_TRUE(tensor::Decode(*ToBytes(SomeAppend()), &message).ok());
  change(&message.header);
  const auto got = MessageIn(*tensor::Encode(message));
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WireTest, ValuesOutOfBoundsAreRefused) {
  ExpectRefused([](auto* header) { header->clear_append(); });
  ExpectRefused([](auto* header) {
    header->mutable_envelope()->set_shard(replication::kMaxShards);
  });
  ExpectRefused([](auto* header) {
    header->mutable_envelope()->set_build(std::string(10000, 'x'));
  });
  ExpectRefused([](auto* header) {
    header->mutable_append()->mutable_entries(0)->mutable_worker()->set_rank(
        kMaxRanks);
  });
  ExpectRefused([](auto* header) {
    header->mutable_append()->mutable_entries(0)->set_clock(kMaxClock);
  });
  ExpectRefused([](auto* header) {  // more tensors than there are
    header->mutable_append()->mutable_entries(3)->set_tensors(3);
  });
  ExpectRefused([](auto* header) {  // tensors of no push
    header->mutable_append()->mutable_entries(3)->set_tensors(1);
  });
  ExpectRefused([](auto* header) {
    header->mutable_append()->set_prev_seq(~uint64_t{0} - 1);
  });
  ExpectRefused([](auto* header) {
    header->mutable_append()->mutable_entries(1)->set_kind(
        static_cast<v1::LogEntry::Kind>(17));
  });
}

TEST(WireTest, DamagedBytesAreRefusedOrParsed) {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  std::mt19937 random(seed);
  const std::vector<std::string> messages = {
      Flat(*ToBytes(SomeAppend())), Flat(*ToBytes(SomeEnvelope(), SomeState())),
      Flat(ToBytes(replication::Answer()))};
  const absl::Time end = absl::Now() + absl::Milliseconds(500);
  while (absl::Now() < end) {
    std::string bytes = messages[random() % messages.size()];
    for (size_t changes = random() % 4 + 1; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(bytes.size() - random() % 3);
    MessageIn(Buffer(bytes)).status().IgnoreError();
    AnswerIn(Buffer(bytes)).status().IgnoreError();
  }
}

}  // namespace
}  // namespace penstock::ps
