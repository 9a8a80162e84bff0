// A simple and slow model of a sparse table.

#ifndef PENSTOCK_TESTS_PS_SPARSE_TABLE_MODEL_H_
#define PENSTOCK_TESTS_PS_SPARSE_TABLE_MODEL_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "ps/sparse/initial_value.h"
#include "ps/sparse/options.h"

namespace penstock::ps::sparse {

struct ModelRow {
  std::vector<float> elements;  // value and slots
  uint32_t updates = 0;
  int64_t last_use = 0;
  uint64_t order = 0;  // of the last use

  bool operator==(const ModelRow& other) const {
    return elements == other.elements && updates == other.updates;
  }
};
using ModelRows = std::map<uint64_t, ModelRow>;

// A model of a Table. The Table must have one shard, or no limit of rows.
class TableModel {
 public:
  explicit TableModel(const Options& options)
      : options_(options),
        initial_(options.initial, options.seed, options.name),
        ttl_(options.time_to_live == absl::InfiniteDuration()
                 ? INT64_MAX
                 : absl::ToInt64Seconds(options.time_to_live)) {}

  std::vector<float> Pull(uint64_t id, int64_t now) {
    auto found = rows_.find(id);
    if (found != rows_.end() && now - found->second.last_use <= ttl_) {
      Use(&found->second, now);
    } else if (options_.store_on_pull) {
      Expire(id, now);
      Make(id, now);
    } else {
      return NewRow(id, options_.dim);
    }
    const std::vector<float>& all = rows_.at(id).elements;
    return {all.begin(), all.begin() + options_.dim};
  }

  // Returns true if a push would make a row.
  bool WouldMake(uint64_t id, int64_t now) const {
    const auto row = rows_.find(id);
    if (row != rows_.end()) return now - row->second.last_use > ttl_;
    const auto pushes = pushes_.find(id);
    const uint32_t before = pushes == pushes_.end() ? 0 : pushes->second;
    return before + 1 >= options_.min_count;
  }

  // Returns the row that the gradient changes. Returns null if the id is not
  // admitted.
  ModelRow* Push(uint64_t id, int64_t now) {
    Expire(id, now);
    if (rows_.count(id) == 0) {
      if (++pushes_[id] < options_.min_count) return nullptr;
      pushes_.erase(id);
      Make(id, now);
    }
    ModelRow* const row = &rows_.at(id);
    Use(row, now);
    ++row->updates;
    return row;
  }

  bool Remove(uint64_t id) { return rows_.erase(id) > 0; }

  void Maintain(int64_t now) {
    for (auto row = rows_.begin(); row != rows_.end();) {
      if (now - row->second.last_use > ttl_) {
        row = rows_.erase(row);
        ++expired_;
      } else {
        ++row;
      }
    }
  }

  void ForgetCounts() { created_ = expired_ = over_capacity_ = 0; }

  const ModelRows& rows() const { return rows_; }
  uint64_t created() const { return created_; }
  uint64_t expired() const { return expired_; }
  uint64_t over_capacity() const { return over_capacity_; }

 private:
  void Use(ModelRow* row, int64_t now) {
    row->last_use = now;
    row->order = ++uses_;
  }
  void Expire(uint64_t id, int64_t now) {
    auto found = rows_.find(id);
    if (found == rows_.end() || now - found->second.last_use <= ttl_) return;
    rows_.erase(found);
    ++expired_;
  }
  std::vector<float> NewRow(uint64_t id, size_t elements) const {
    std::vector<float> row(elements);
    initial_.Fill(id, options_.dim, row.data());
    return row;
  }
  void Make(uint64_t id, int64_t now) {
    if (options_.max_rows > 0 && rows_.size() == options_.max_rows) {
      auto oldest = rows_.begin();
      for (auto row = rows_.begin(); row != rows_.end(); ++row) {
        if (row->second.order < oldest->second.order) oldest = row;
      }
      rows_.erase(oldest);
      ++over_capacity_;
    }
    ModelRow row;
    row.elements = NewRow(id, options_.dim * (1 + options_.slots()));
    for (size_t i = options_.dim; i < row.elements.size(); ++i) {
      row.elements[i] = options_.initial_slots[i / options_.dim - 1];
    }
    Use(&row, now);
    rows_.emplace(id, row);
    ++created_;
  }

  const Options options_;
  const InitialValue initial_;
  const int64_t ttl_;
  ModelRows rows_;
  std::map<uint64_t, uint32_t> pushes_;
  uint64_t uses_ = 0;
  uint64_t created_ = 0;
  uint64_t expired_ = 0;
  uint64_t over_capacity_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_TESTS_PS_SPARSE_TABLE_MODEL_H_
