// A memory limit shared by several tables.

#ifndef PENSTOCK_PS_SPARSE_POOL_H_
#define PENSTOCK_PS_SPARSE_POOL_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace penstock::ps::sparse {

// A memory limit for all tables without a budget of their own. Counts their
// bytes. A shard grows in steps: by a slab of rows, or to an index of twice the
// size. The shard checks the limit before each step, so each concurrent thread
// may exceed the limit by one step.
//
// The memory of candidates and removals never shrinks. Each shard therefore has
// an equal share for them; all shares together leave three quarters of the
// limit for rows.
//
// Must outlive the tables. Thread-safe.
class Pool {
 public:
  // Makes a pool of `limit` bytes. The messages of refused pushes end with
  // `remedy`.
  Pool(size_t limit, std::string remedy)
      : limit_(limit), remedy_(std::move(remedy)) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  size_t limit() const { return limit_; }
  size_t bytes() const { return bytes_; }
  size_t left() const {
    const size_t bytes = bytes_;
    return limit_ - (bytes < limit_ ? bytes : limit_);
  }
  const std::string& remedy() const { return remedy_; }
  // Returns the bytes that a shard's candidates may use. The shard's removals
  // may use the same amount in addition. Each further shard makes the shares
  // smaller.
  size_t list_share() const {
    const size_t shards = shards_;
    return limit_ / 8 / (shards > 0 ? shards : 1);
  }

  // Record that a shard begins or stops to use the pool.
  void AddShard() { ++shards_; }
  void RemoveShard() { --shards_; }

  // Records that a shard's memory has changed from `before` to `now` bytes.
  void Count(size_t before, size_t now) { bytes_ += now - before; }

 private:
  const size_t limit_;
  const std::string remedy_;
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> shards_{0};
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_POOL_H_
