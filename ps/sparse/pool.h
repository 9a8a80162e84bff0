// A memory limit shared by several tables.

#ifndef PENSTOCK_PS_SPARSE_POOL_H_
#define PENSTOCK_PS_SPARSE_POOL_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace penstock::ps::sparse {

// A limit on the memory of all tables without a budget of their own together.
// Counts their bytes. A shard grows in steps: a slab of rows, or an index of
// twice the size. The shard checks the limit before each step, so concurrent
// threads may each exceed the limit by one step.
//
// Candidates and removals never shrink. Each shard therefore has an equal share
// for them, so that they leave three quarters of the limit to rows.
//
// Must outlive the tables. Thread-safe.
class Pool {
 public:
  // Makes a pool of `limit` bytes. `remedy` is the end of the message of a
  // refused push.
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
  // Returns the bytes that a shard's candidates may take. The shard's removals
  // may take as many again. Each further shard makes the shares smaller.
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
