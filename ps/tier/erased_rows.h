// Remembers the rows that were erased while the disk was full.

#ifndef PENSTOCK_PS_TIER_ERASED_ROWS_H_
#define PENSTOCK_PS_TIER_ERASED_ROWS_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ps/tier/row_key.h"

namespace penstock::ps {

// The set of rows whose deletions are not written to the database yet. A
// database on a full disk accepts no deletions. The thread that erases a row
// cannot wait, because the row is in memory again and changes. The database
// therefore still has such rows for a while, and this set stores their keys,
// about 20 bytes each. The deletions are written before anything else.
//
// Thread-safe.
class ErasedRows {
 public:
  using Set = absl::flat_hash_set<RowKey>;

  bool Has(const RowKey& row) const {
    if (is_empty_) return false;
    absl::MutexLock lock(&mu_);
    return rows_.contains(row);
  }
  void Add(const RowKey& row) {
    absl::MutexLock lock(&mu_);
    rows_.insert(row);
    is_empty_ = false;
  }
  // Calls `write`, which deletes the rows from the database. Forgets the rows
  // if `write` returns OK. Does nothing if there are none.
  absl::Status Write(absl::FunctionRef<absl::Status(const Set&)> write) {
    if (is_empty_) return absl::OkStatus();
    absl::MutexLock lock(&mu_);
    if (rows_.empty()) return absl::OkStatus();
    absl::Status status = write(rows_);
    if (!status.ok()) return status;
    rows_ = {};
    is_empty_ = true;
    return absl::OkStatus();
  }
  // Calls `look` with the set of rows. Blocks Write() until `look` returns.
  void Look(absl::FunctionRef<void(const Set&)> look) const {
    absl::MutexLock lock(&mu_);
    look(rows_);
  }

 private:
  mutable absl::Mutex mu_;
  Set rows_ ABSL_GUARDED_BY(mu_);
  // True if the set is empty. In this usual case, no lock is needed.
  std::atomic<bool> is_empty_{true};
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_ERASED_ROWS_H_
