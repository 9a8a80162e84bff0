#include "ps/etcd/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace penstock::ps::etcd {
namespace {

using testing::HasSubstr;

etcdserverpb::ResponseHeader Header(uint64_t cluster, int64_t revision) {
  etcdserverpb::ResponseHeader header;
  header.set_cluster_id(cluster);
  header.set_revision(revision);
  return header;
}

TEST(HistoryTest, RevisionsMayGrow) {
  History history;
  EXPECT_TRUE(history.Check(Header(7, 10), history.floor()).ok());
  EXPECT_TRUE(history.Check(Header(7, 11), history.floor()).ok());
  EXPECT_EQ(history.floor(), 11);
}

TEST(HistoryTest, AnOlderRevisionIsAnotherEtcd) {
  History history;
  ASSERT_TRUE(history.Check(Header(7, 10), history.floor()).ok());
  const absl::Status status = history.Check(Header(7, 9), history.floor());
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("revision 9"));
  EXPECT_EQ(history.floor(), 10);
}

TEST(HistoryTest, ACallThatBeganEarlierMayHaveAnOlderRevision) {
  History history;
  ASSERT_TRUE(history.Check(Header(7, 10), 0).ok());
  const int64_t floor = history.floor();
  ASSERT_TRUE(history.Check(Header(7, 20), floor).ok());
  EXPECT_TRUE(history.Check(Header(7, 15), floor).ok());
  EXPECT_EQ(history.floor(), 20);
}

TEST(HistoryTest, AnotherClusterIsRefusedWhateverItsRevision) {
  History history;
  ASSERT_TRUE(history.Check(Header(7, 10), 0).ok());
  EXPECT_TRUE(absl::IsDataLoss(history.Check(Header(8, 1000), 0)));
  EXPECT_EQ(history.floor(), 10);
  EXPECT_TRUE(absl::IsDataLoss(history.Check(Header(0, 1000), 0)));
}

}  // namespace
}  // namespace penstock::ps::etcd
