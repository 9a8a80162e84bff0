// Memory that several tables share.

#ifndef PENSTOCK_PS_SPARSE_POOL_H_
#define PENSTOCK_PS_SPARSE_POOL_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace penstock::ps::sparse {

// Counts what tables take that have no budget of their own, so that all of them
// together stay below a limit. Each of their shards grows by a step at a time,
// a slab of rows or an index of twice the size, and looks at the limit before
// it does: threads that do so at once may go above it by a step each.
//
// Thread-safe. Outlives the tables.
class Pool {
 public:
  // `remedy` ends the message of a push that is refused.
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

  // Counts what a shard takes that has taken `before`.
  void Count(size_t before, size_t now) { bytes_ += now - before; }

 private:
  const size_t limit_;
  const std::string remedy_;
  std::atomic<size_t> bytes_{0};
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_POOL_H_
