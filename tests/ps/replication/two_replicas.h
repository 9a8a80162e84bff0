// Two replicas of a shard. The test moves the messages between them.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_TWO_REPLICAS_H_
#define PENSTOCK_TESTS_PS_REPLICATION_TWO_REPLICAS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ps/replication/backup.h"
#include "ps/replication/primary.h"
#include "ps/replication/replica.h"

namespace penstock::ps::replication {

inline const ReplicaId kA = {"a", 1};
inline const ReplicaId kB = {"b", 2};
inline const ReplicaId kC = {"c", 3};
inline const WorkerId kWorker = {0, 99};

class Bytes final : public Payload {
 public:
  explicit Bytes(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const override { return bytes_; }

 private:
  const size_t bytes_;
};

inline absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

inline View ViewOf(uint64_t number, ReplicaId primary,
                   std::vector<ReplicaId> backups,
                   std::vector<ReplicaId> joiners = {}) {
  return {7, number, {{primary, std::move(backups), std::move(joiners)}}};
}

inline Options OptionsOf(const ReplicaId& self) {
  Options options;
  options.group = {7, 8, "1.0", 0};
  options.self = self;
  options.max_log_bytes = 10000;
  return options;
}

// Two replicas: A leads view 2, and B is its backup.
class ReplicaTest : public testing::Test {
 protected:
  ReplicaTest()
      : a_(OptionsOf(kA), PushHistory(), true),
        b_(OptionsOf(kB), PushHistory(), false) {
    Move(ViewOf(1, kA, {}, {kB}));
    Exchange(At(0));
    Exchange(At(0));
    EXPECT_EQ(primary().Complete(), std::vector<ReplicaId>{kB});
    Move(ViewOf(2, kA, {kB}));
    EXPECT_TRUE(primary().Join(kWorker, At(0)).ok());
    Exchange(At(0));
  }

  Primary& primary() { return *a_.primary(); }
  Backup& backup() { return *b_.backup(); }

  void Move(const View& view) {
    EXPECT_TRUE(a_.OnView(view, At(0)).ok());
    EXPECT_TRUE(b_.OnView(view, At(0)).ok());
  }

  // Sends the primary's next message to the backup, and the answer back.
  void Exchange(absl::Time now) {
    Append message = *primary().Heartbeat(kB, now);
    primary().OnAnswer(backup().OnAppend(message, now), now);
  }

  uint64_t Push(uint64_t clock, size_t bytes = 10) {
    return *primary().Accept({{kWorker, clock}}, std::make_shared<Bytes>(bytes),
                             At(0));
  }

  absl::Status Refused(const Append& message) {
    return backup().OnAppend(message, At(1)).status;
  }

  Replica a_;
  Replica b_;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_TWO_REPLICAS_H_
