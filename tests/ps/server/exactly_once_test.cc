// Tests two workers that die, return, are replaced, repeat pushes and give up
// calls, in random order. In the end, each push must have changed the values
// once or not at all, according to its answers.

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/ps/seeds.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using Verdict = Server::PushVerdict;

constexpr View kView = SmallServer::kView;
constexpr int kActs = 300;

class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed), server_(TwoWorkers()) {}

  void Run() {
    Start();
    for (int i = 0; i < kActs && !testing::Test::HasFailure(); ++i) {
      Act(&workers_[Below(2)]);
      TakeAnswers(/*wait=*/false);
    }
    // Ends the waits for workers, so that steps end without these workers.
    for (const Worker& worker : workers_) server_->Lost(worker.id);
    TakeAnswers(/*wait=*/true);
    while (server_->report().held_bytes > 0) {
      ASSERT_TRUE(server_->TakeSnapshot(kView, {}, {}, absl::Seconds(60)).ok());
    }
    EXPECT_EQ(server_->report().pushes.counted, counted_);
    for (const size_t push : duplicates_) {
      EXPECT_TRUE(LaterHasCounted(pushes_[push])) << "none has counted";
    }
    for (size_t table = 0; table < staleness_.size(); ++table) Check(table);
  }

 private:
  struct Worker {
    WorkerId id;
    uint64_t clock = 0;
    std::vector<size_t> pushes;  // pushes of this incarnation
  };
  // One push, which may be sent several times. The push moves a row by 1 in
  // each of its tables. No other push has this row.
  struct OnePush {
    WorkerId worker;
    uint64_t clock;
    std::vector<bool> has_table;
    bool has_counted = false;
  };
  struct Attempt {
    size_t push;
    uint64_t ticket;
    Answer<Verdict> answer;
    // True if this push, or a later one of the worker, had counted when the
    // attempt was sent.
    bool is_repeated;
  };

  static Server::Options TwoWorkers() {
    Server::Options options;
    options.membership.expected_workers = 2;
    options.membership.lease = absl::Hours(1);
    return options;
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  static std::string NameOf(size_t table) { return absl::StrCat("t", table); }

  void Start() {
    const std::vector<std::vector<int64_t>> kModels = {
        {0},
        {1},
        {ConsistencyPolicy::kUnlimited},
        {0, ConsistencyPolicy::kUnlimited},
        {0, 2},
        {0, 1, ConsistencyPolicy::kUnlimited}};
    staleness_ = kModels[Below(kModels.size())];
    Model model;
    for (size_t i = 0; i < staleness_.size(); ++i) {
      model.tables.push_back(SparseTable(NameOf(i), 1, staleness_[i]));
    }
    ASSERT_TRUE(server_.Define(model).ok());
    for (uint32_t rank = 0; rank < 2; ++rank) {
      workers_[rank].id = {rank, 1 + rank};
      ASSERT_TRUE(server_->Join(kView, workers_[rank].id).ok());
    }
  }

  void Act(Worker* worker) {
    const uint64_t what = Below(100);
    if (what < 55) {
      Send(PushOf(worker, worker->clock + (Below(10) == 0 ? Below(3) : 0)));
    } else if (what < 70) {
      if (!worker->pushes.empty()) {
        Send(worker->pushes[Below(worker->pushes.size())]);
      }
    } else if (what < 75) {
      pulls_.push_back(server_.StartPull(worker->id, worker->clock));
    } else if (what < 80) {
      server_->Lost(worker->id);
    } else if (what < 82) {
      server_->Leave(worker->id);
    } else if (what < 92) {
      Join(worker);
    } else if (what < 95) {
      worker->id.incarnation += 10;
      worker->pushes.clear();
      Join(worker);
    } else if (what < 97) {
      (void)server_->Heartbeat(kView.run, worker->id);
    } else if (!attempts_.empty()) {
      server_->Cancel(attempts_.back().ticket);
    }
  }

  void Join(Worker* worker) {
    const auto joined = server_->Join(kView, worker->id);
    ASSERT_TRUE(joined.ok()) << joined.status();
    worker->clock = std::max(worker->clock, joined->clock);
  }

  size_t PushOf(Worker* worker, uint64_t clock) {
    const auto key =
        std::make_tuple(worker->id.rank, worker->id.incarnation, clock);
    const auto [found, is_new] = push_of_.insert({key, pushes_.size()});
    if (is_new) {
      OnePush push{worker->id, clock, {}};
      for (size_t i = 0; i < staleness_.size(); ++i) {
        push.has_table.push_back(Below(4) > 0);
      }
      pushes_.push_back(std::move(push));
      worker->pushes.push_back(found->second);
    }
    return found->second;
  }

  void Send(size_t which) {
    const OnePush& push = pushes_[which];
    tensor::Bundle bundle;
    for (size_t i = 0; i < push.has_table.size(); ++i) {
      if (!push.has_table[i]) continue;
      const auto id = static_cast<int64_t>(which);
      bundle.tensors.push_back(Ids(NameOf(i), {id}));
      bundle.tensors.push_back(Floats(NameOf(i), {1, 1}, {1}));
    }
    Attempt attempt{which, 0, {}, LaterHasCounted(push)};
    attempt.ticket = server_->Push(kView, push.worker, push.clock, bundle,
                                   attempt.answer.callback());
    attempts_.push_back(std::move(attempt));
  }

  bool LaterHasCounted(const OnePush& push) const {
    for (const OnePush& other : pushes_) {
      if (other.has_counted && other.worker.rank == push.worker.rank &&
          other.worker.incarnation == push.worker.incarnation &&
          other.clock >= push.clock) {
        return true;
      }
    }
    return false;
  }

  void TakeAnswers(bool wait) {
    for (auto it = attempts_.begin(); it != attempts_.end();) {
      if (!wait && !it->answer.is_there()) {
        ++it;
        continue;
      }
      TakeAnswer(*it, it->answer.Wait());
      it = attempts_.erase(it);
    }
  }

  void TakeAnswer(const Attempt& attempt,
                  const absl::StatusOr<Verdict>& verdict) {
    OnePush& push = pushes_[attempt.push];
    Worker& worker = workers_[push.worker.rank];
    if (!verdict.ok()) {
      EXPECT_FALSE(absl::IsInvalidArgument(verdict.status()))
          << verdict.status();
      return;
    }
    if (worker.id.incarnation == push.worker.incarnation) {
      worker.clock = std::max(worker.clock, push.clock + 1);
    }
    switch (*verdict) {
      case Verdict::kCounted:
        EXPECT_FALSE(attempt.is_repeated);
        EXPECT_FALSE(push.has_counted) << "it has counted twice";
        push.has_counted = true;
        ++counted_;
        return;
      case Verdict::kDuplicate:
        // Notes the push for later, because the answer kCounted may still be in
        // flight.
        duplicates_.push_back(attempt.push);
        return;
      case Verdict::kLate:
        EXPECT_FALSE(attempt.is_repeated) << "it had counted";
        return;
    }
  }

  std::vector<float> RowsOf(size_t table) {
    std::vector<int64_t> ids(pushes_.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
    const auto pulled =
        server_.Pull(absl::nullopt, 0, {{Ids(NameOf(table), ids)}});
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    return pulled.ok() ? ElementsOf(pulled->bundle.tensors[0].tensor)
                       : std::vector<float>(ids.size());
  }

  void Check(size_t table) {
    const std::vector<float> rows = RowsOf(table);
    std::map<uint64_t, size_t> of_step;
    for (size_t i = 0; i < rows.size(); ++i) {
      of_step[pushes_[i].clock] += rows[i] != 0 ? 1 : 0;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const OnePush& push = pushes_[i];
      const bool may = push.has_counted && push.has_table[table];
      const bool is_synchronous = staleness_[table] == 0;
      // Allows for a push that was late for this table, but that another table
      // may have counted.
      if (is_synchronous && staleness_.size() > 1 && may && rows[i] == 0) {
        continue;
      }
      const float mean =
          is_synchronous
              ? 1 / static_cast<float>(std::max<size_t>(1, of_step[push.clock]))
              : 1;
      EXPECT_EQ(rows[i], may ? -mean : 0)
          << "table " << table << ", push " << push.clock << " of worker "
          << push.worker.rank << ", incarnation " << push.worker.incarnation;
    }
  }

  std::mt19937_64 random_;
  SmallServer server_;
  std::vector<int64_t> staleness_;  // staleness of each table
  Worker workers_[2];
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, size_t> push_of_;
  std::vector<OnePush> pushes_;
  std::list<Attempt> attempts_;  // attempts without a known answer
  std::vector<Answer<Server::Pulled>> pulls_;
  std::vector<size_t> duplicates_;
  uint64_t counted_ = 0;
};

TEST(ExactlyOnceTest, EachPushCountsAsItsAnswerSays) {
  RunEachSeed([](uint64_t seed) { Program(seed).Run(); });
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 200);
}
