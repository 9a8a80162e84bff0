#include "ps/etcd/copy.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::ps::etcd {
namespace {

void Fill(const std::string& key, const std::string& value, int64_t revision,
          mvccpb::KeyValue* kv) {
  kv->set_key(key);
  kv->set_value(value);
  kv->set_mod_revision(revision);
}

etcdserverpb::RangeResponse Answer(int64_t revision) {
  etcdserverpb::RangeResponse reply;
  reply.mutable_header()->set_revision(revision);
  return reply;
}

etcdserverpb::WatchResponse Put(const std::string& key,
                                const std::string& value, int64_t revision) {
  etcdserverpb::WatchResponse response;
  response.mutable_header()->set_revision(revision);
  Fill(key, value, revision, response.add_events()->mutable_kv());
  return response;
}

TEST(CopyTest, WatchBeginsAfterTheRead) {
  Copy copy;
  EXPECT_TRUE(copy.wants_read());
  etcdserverpb::RangeResponse reply = Answer(20);
  Fill("a", "1", 5, reply.add_kvs());
  EXPECT_TRUE(copy.Read(reply));
  EXPECT_FALSE(copy.Read(reply));
  EXPECT_FALSE(copy.wants_read());
  EXPECT_EQ(copy.next_revision(), 21);
}

TEST(CopyTest, EventsThatTheCopyHasAreIgnored) {
  Copy copy;
  copy.Read(Answer(20));
  EXPECT_TRUE(copy.Apply(Put("a", "2", 21)));
  EXPECT_FALSE(copy.Apply(Put("a", "1", 20)));
  EXPECT_FALSE(copy.Apply(Put("a", "3", 21)));
  EXPECT_EQ(copy.values().at("a").value(), "2");
  EXPECT_EQ(copy.next_revision(), 22);
}

TEST(CopyTest, AllEventsOfOneRevisionCount) {
  Copy copy;
  copy.Read(Answer(20));
  etcdserverpb::WatchResponse response = Put("a", "1", 21);
  Fill("b", "2", 21, response.add_events()->mutable_kv());
  EXPECT_TRUE(copy.Apply(response));
  EXPECT_EQ(copy.values().size(), 2u);
}

TEST(CopyTest, DeletedKeysAreGone) {
  Copy copy;
  etcdserverpb::RangeResponse reply = Answer(20);
  Fill("a", "1", 5, reply.add_kvs());
  copy.Read(reply);
  etcdserverpb::WatchResponse response = Put("a", "", 21);
  response.mutable_events(0)->set_type(mvccpb::Event::DELETE);
  EXPECT_TRUE(copy.Apply(response));
  EXPECT_TRUE(copy.values().empty());
}

// Tests that a watch is resumed after its last event. The revision of a header
// may be ahead of events that are still to come.
TEST(CopyTest, WatchIsResumedAfterTheLastEvent) {
  Copy copy;
  copy.Read(Answer(20));
  etcdserverpb::WatchResponse response = Put("a", "1", 21);
  response.mutable_header()->set_revision(30);
  copy.Apply(response);
  EXPECT_EQ(copy.next_revision(), 22);
}

TEST(CopyTest, ProgressMovesTheRevision) {
  Copy copy;
  copy.Read(Answer(20));
  etcdserverpb::WatchResponse progress;
  progress.mutable_header()->set_revision(40);
  EXPECT_FALSE(copy.Apply(progress));
  EXPECT_EQ(copy.next_revision(), 41);
}

TEST(CopyTest, CompactionAsksForARead) {
  Copy copy;
  etcdserverpb::RangeResponse reply = Answer(20);
  Fill("a", "1", 5, reply.add_kvs());
  copy.Read(reply);
  etcdserverpb::WatchResponse response;
  response.set_canceled(true);
  response.set_compact_revision(90);
  response.mutable_header()->set_revision(95);
  EXPECT_FALSE(copy.Apply(response));
  EXPECT_TRUE(copy.wants_read());
  EXPECT_EQ(copy.values().size(), 1u);
  copy.Read(Answer(95));
  EXPECT_TRUE(copy.values().empty());
}

}  // namespace
}  // namespace penstock::ps::etcd
