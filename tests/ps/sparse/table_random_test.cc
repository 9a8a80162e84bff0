// Tests random programs of calls on a table and on its model, and compares
// them. Snapshots are compared with the model at their time.
//
// SPARSE_SEED repeats one program; SPARSE_SEEDS sets the number of programs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/failing_memory.h"
#include "tests/ps/sparse/memory_tier.h"
#include "tests/ps/sparse/table_model.h"

namespace penstock::ps::sparse {
namespace {

using Ids = std::vector<uint64_t>;

absl::Time At(int64_t second) { return absl::FromUnixSeconds(second); }

class Program {
 public:
  explicit Program(uint64_t seed)
      : random_(seed), options_(RandomOptions()), model_(options_) {
    table_ = *Table::Create(options_);
    // Mixes some large and hostile ids with small ones.
    for (uint64_t id = 0; id < 50 + Below(300); ++id) {
      ids_.push_back(id % 3 == 0 ? random_() : id);
    }
    ids_.push_back(~uint64_t{0});
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(step);
      Step();
    }
    if (snapshot_ != nullptr) FinishSnapshot();
    Compare();
    snapshot_.reset();
    held_.clear();
    Compare();
  }

  uint64_t fetched() const { return fetched_ + table_->counters().fetched; }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Once(int in) { return Below(in) == 0; }

  Options RandomOptions() {
    Options options;
    options.name = "random";
    // Rows of up to 50 KiB fill several slabs.
    const size_t dims[] = {1, 3, 64};
    options.dim = Once(6) ? 6000 : dims[Below(3)];
    for (uint64_t slots = Below(3); slots > 0; --slots) {
      options.initial_slots.push_back(slots * 0.5f);
    }
    const Initial::Kind kinds[] = {
        Initial::Kind::kZeros, Initial::Kind::kUniform, Initial::Kind::kNormal};
    options.initial.kind = kinds[Below(3)];
    options.seed = random_();
    options.hash_seed = random_();
    options.shards = size_t{1} << Below(4);
    options.store_on_pull = Once(4);
    if (!options.store_on_pull && Once(2)) options.min_count = 1 + Below(3);
    options.candidates = 1 << 16;
    if (Once(2)) options.time_to_live = absl::Seconds(1 + Below(20));
    if (Once(3)) {
      options.shards = 1;
      options.max_rows = 1 + Below(200);
    }
    options.memory = &memory_;
    if (options.max_rows == 0 && Once(2)) LetSpill(&options);
    return options;
  }

  // Gives memory room for some rows, and the tier room for all others.
  void LetSpill(Options* options) {
    options->shards = 1;
    options->time_to_live = absl::InfiniteDuration();
    options->max_removals = 1 << 14;
    options->candidates = 1 << 10;
    options->above_budget = AboveBudget::kSpill;
    options->tier = tier_.get();
    const size_t row =
        RowStore::StrideOf(options->dim * (1 + options->slots()));
    options->budget_bytes = LeastBudget(*options) + Below(10) * row;
  }
  bool spills() const { return options_.tier != nullptr; }

  void Step() {
    switch (Below(28)) {
      case 0:
        now_ += Below(8);
        break;
      case 1:
        while (table_->Maintain(At(now_))) {
        }
        model_.Maintain(now_);
        break;
      case 2:
        return Remove();
      case 3:
        return Compare();
      case 4:
        // Sometimes removes most ids, so that slabs become empty.
        return Once(5) ? RemoveMost() : Remove();
      case 5:
      case 6:
        if (snapshot_ == nullptr) return BeginSnapshot();
        return Once(4) ? FinishSnapshot() : void(ReadSnapshot());
      case 7:
      case 8:
      case 9:
        return snapshot_ == nullptr ? Pull() : void(ReadSnapshot());
      case 10:
        return Once(10) && snapshot_ == nullptr ? Restore() : Pull();
      case 11:
      case 12:
        return Reserve();
      case 13:
        return PushReserved();
      case 14:
        return GiveBack();
      default:
        return Once(3) ? Pull() : Push();
    }
  }

  Ids Some(bool unique) {
    Ids some(Below(60));
    // Chooses ids. Prefers those at the front of ids_.
    for (uint64_t& id : some) id = ids_[Below(1 + Below(ids_.size()))];
    if (!unique) return some;
    Ids once;
    for (const uint64_t id : some) {
      if (std::find(once.begin(), once.end(), id) == once.end()) {
        once.push_back(id);
      }
    }
    return once;
  }

  void Pull() {
    const Ids ids = Some(/*unique=*/false);
    std::vector<float> out(ids.size() * options_.dim, -1);
    ASSERT_TRUE(table_->Pull(ids, At(now_), absl::MakeSpan(out)).ok());
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto begin = out.begin() + i * options_.dim;
      ASSERT_EQ(std::vector<float>(begin, begin + options_.dim),
                model_.Pull(ids[i], now_))
          << ids[i];
    }
  }

  void Push() { PushIds(Some(/*unique=*/true), nullptr); }

  // Makes a reservation that is applied later, or never.
  void Reserve() {
    Held held;
    held.ids = Some(/*unique=*/true);
    auto reservation = table_->Reserve(held.ids, At(now_));
    ASSERT_TRUE(reservation.ok()) << reservation.status();
    held.reservation = *std::move(reservation);
    for (const uint64_t id : held.ids) held.rows += model_.WouldMake(id, now_);
    ASSERT_GE(held.reservation.rows(), held.rows);
    // Compares only without a tier, because reservations ignore rows in a tier.
    ASSERT_TRUE(spills() || held.reservation.rows() == held.rows);
    held.rows = held.reservation.rows();
    held_.push_back(std::move(held));
  }

  // Pushes one or several reservations at once, as a synchronous step does.
  void PushReserved() {
    Ids ids;
    Reservation merged;
    for (uint64_t i = 1 + Below(3); i > 0 && !held_.empty(); --i) {
      Held held = TakeHeld();
      ASSERT_TRUE(merged.Merge(std::move(held.reservation)).ok());
      for (const uint64_t id : held.ids) {
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
          ids.push_back(id);
        }
      }
    }
    PushIds(ids, &merged);
  }

  void GiveBack() {
    if (!held_.empty()) TakeHeld();
  }

  struct Held {
    Ids ids;
    size_t rows = 0;
    Reservation reservation;
  };
  Held TakeHeld() {
    std::swap(held_[Below(held_.size())], held_.back());
    Held held = std::move(held_.back());
    held_.pop_back();
    return held;
  }

  // Adds the gradient to the value, and the value to each slot.
  void PushIds(const Ids& ids, Reservation* reservation) {
    const size_t dim = options_.dim;
    const size_t slots = options_.slots();
    std::vector<float> gradients(ids.size() * dim);
    for (float& gradient : gradients) gradient = static_cast<int>(Below(9)) - 4;
    const auto apply = [&](const float* gradient, float* value, float* slot) {
      for (size_t k = 0; k < dim; ++k) value[k] += gradient[k];
      for (size_t k = 0; k < dim * slots; ++k) slot[k] += value[k % dim];
    };
    const auto result = reservation == nullptr
                            ? table_->Push(ids, gradients, At(now_), apply)
                            : table_->Push(ids, gradients, At(now_), apply,
                                           std::move(*reservation));
    ASSERT_TRUE(result.ok()) << result.status();
    size_t updated = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      ModelRow* const row = model_.Push(ids[i], now_);
      if (row == nullptr) continue;
      ++updated;
      float* const value = row->elements.data();
      apply(gradients.data() + i * dim, value, value + dim);
    }
    ASSERT_EQ(result->updated, updated);
    ASSERT_EQ(result->not_admitted, ids.size() - updated);
    ASSERT_EQ(result->dropped, 0u);
  }

  void Remove() {
    const Ids ids = Some(/*unique=*/false);
    size_t removed = 0;
    for (const uint64_t id : ids) removed += model_.Remove(id);
    ASSERT_EQ(table_->Remove(ids), removed);
  }

  void RemoveMost() {
    Ids ids;
    for (const uint64_t id : ids_) {
      if (!Once(8)) ids.push_back(id);
    }
    for (const uint64_t id : ids) model_.Remove(id);
    table_->Remove(ids);
  }

  void Compare() {
    const Counters counters = table_->counters();
    ASSERT_EQ(counters.rows, model_.rows().size());
    ASSERT_EQ(counters.spilled_rows, tier_->size());
    size_t reserved = 0;
    for (const Held& held : held_) reserved += held.rows;
    ASSERT_EQ(counters.reserved, reserved);
    ASSERT_EQ(counters.created - restored_, model_.created());
    ASSERT_EQ(counters.expired, model_.expired());
    ASSERT_EQ(counters.over_capacity, model_.over_capacity());
    ASSERT_EQ(counters.created, counters.rows + counters.expired +
                                    counters.over_capacity + counters.removed);
  }

  // Begins a full snapshot, or one since the last complete snapshot.
  void BeginSnapshot() {
    SnapshotOptions options;
    options.copy_bytes = size_t{1} << 30;
    taken_.clear();
    if (last_epoch_ > 0 && !Once(4)) {
      options.since = last_epoch_;
      taken_ = last_;
    }
    auto snapshot = table_->BeginSnapshot(options);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    snapshot_ = *std::move(snapshot);
    expected_ = model_.rows();
    given_.clear();
    if (Once(8)) snapshot_.reset();  // sometimes abandoned
  }

  // Reads the snapshot. Merges it like a restore of both snapshots.
  bool ReadSnapshot() {
    RowBlock block;
    const auto more = snapshot_->Next(1 + Below(80), &block);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return false;
    for (const uint64_t id : block.removed) {
      // Expects that no removal follows the row that it removes.
      EXPECT_EQ(given_.count(id), 0u);
      taken_.erase(id);
    }
    const size_t slots = options_.dim * options_.slots();
    for (size_t i = 0; i < block.ids.size(); ++i) {
      ModelRow row;
      const float* const value = &block.values[i * options_.dim];
      row.elements.assign(value, value + options_.dim);
      row.elements.insert(row.elements.end(), block.slots.begin() + i * slots,
                          block.slots.begin() + (i + 1) * slots);
      row.updates = block.updates[i];
      EXPECT_TRUE(given_.emplace(block.ids[i], row).second) << "given twice";
      taken_[block.ids[i]] = row;
    }
    return true;
  }

  void FinishSnapshot() {
    while (ReadSnapshot()) {
    }
    ASSERT_EQ(taken_.size(), expected_.size());
    ASSERT_TRUE(taken_ == expected_);
    last_ = taken_;
    last_epoch_ = snapshot_->epoch();
    table_->ForgetRemovals(last_epoch_);
    EXPECT_EQ(snapshot_->copied_bytes(), 0u);
    snapshot_.reset();
  }

  // Restores a full snapshot into a new table, which continues like the old
  // one. Candidates are not saved.
  void Restore() {
    if (options_.min_count > 1) return;
    auto snapshot = *table_->BeginSnapshot({});
    const Counters before = table_->counters();
    Options options = options_;
    options.hash_seed = random_();
    auto tier = std::make_unique<MemoryTier>();
    if (spills()) {
      options.tier = tier.get();
    } else if (options.max_rows == 0) {
      options.shards = size_t{1} << Below(4);
    }
    auto table = *Table::Create(options);
    RowBlock block;
    while (*snapshot->Next(1 + Below(80), &block)) {
      ASSERT_TRUE(table->Restore(block).ok());
    }
    table->FinishRestore();
    ASSERT_EQ(table->counters().rows, before.rows);
    snapshot.reset();
    // Stops if rows are limited: the order within a second is lost.
    if (options_.max_rows > 0) return;
    held_.clear();
    fetched_ = fetched();
    table_ = std::move(table);
    tier_ = std::move(tier);
    // Clears the model's counts, because a new table starts with new counts.
    model_.ForgetCounts();
    restored_ = before.rows;
    last_epoch_ = 0;
  }

  std::mt19937_64 random_;
  FailingMemory memory_;
  std::unique_ptr<MemoryTier> tier_ = std::make_unique<MemoryTier>();
  const Options options_;
  std::unique_ptr<Table> table_;
  TableModel model_;
  Ids ids_;
  int64_t now_ = 1000;
  uint64_t restored_ = 0;
  uint64_t fetched_ = 0;

  std::vector<Held> held_;
  std::unique_ptr<Snapshot> snapshot_;
  ModelRows expected_;  // the model, when the snapshot began
  ModelRows given_;     // read from this snapshot
  ModelRows taken_;     // merged with the snapshots before
  ModelRows last_;
  uint32_t last_epoch_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(TableRandomTest, ProgramsDoWhatTheyDoToTheModel) {
  const uint64_t first = FromEnvironment("SPARSE_SEED", std::random_device()());
  const uint64_t seeds = FromEnvironment(
      "SPARSE_SEEDS", std::getenv("SPARSE_SEED") == nullptr ? 50 : 1);
  uint64_t fetched = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "SPARSE_SEED=" << seed);
    Program program(seed);
    program.Run(400);
    if (HasFailure()) return;
    fetched += program.fetched();
  }
  // Expect that rows came from a tier. In a few programs, none may come.
  EXPECT_TRUE(seeds < 20 || fetched > 0);
}

}  // namespace
}  // namespace penstock::ps::sparse
