// The ids of one call, grouped by shard.

#ifndef PENSTOCK_PS_SPARSE_BATCH_H_
#define PENSTOCK_PS_SPARSE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ps/sparse/hash.h"

namespace penstock::ps::sparse {

// The ids of a call, grouped by shard, so that each shard is locked once
// instead of once per id. Ids keep their order within a group.
class Batch {
 public:
  // Groups `ids` into 2^shard_bits shards.
  Batch(absl::Span<const uint64_t> ids, const HashKey& hash, int shard_bits)
      : hashes_(ids.size()),
        positions_(ids.size()),
        ends_(size_t{1} << shard_bits),
        shard_bits_(shard_bits) {
    std::vector<uint64_t> hashes(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      hashes[i] = hash(ids[i]);
      ++ends_[ShardOf(hashes[i], shard_bits)];
    }
    // The start of the group in ends_. While ids are placed, ends_ advances
    // from the start of each group to its end.
    uint32_t begin = 0;
    for (uint32_t& end : ends_) {
      const uint32_t size = end;
      end = begin;
      begin += size;
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint32_t place = ends_[ShardOf(hashes[i], shard_bits)]++;
      hashes_[place] = hashes[i];
      positions_[place] = static_cast<uint32_t>(i);
    }
  }

  // Returns the shard of an id by its hash. The high bits of the hash choose
  // the shard; a shard's index uses the low ones.
  static size_t ShardOf(uint64_t hash, int shard_bits) {
    return shard_bits == 0 ? 0 : hash >> (64 - shard_bits);
  }

  size_t shards() const { return ends_.size(); }
  size_t Begin(size_t shard) const { return shard == 0 ? 0 : ends_[shard - 1]; }
  size_t End(size_t shard) const { return ends_[shard]; }

  // Returns the hashes of the ids, in the order of the groups.
  const uint64_t* hashes() const { return hashes_.data(); }
  uint32_t tag(size_t place) const {
    return static_cast<uint32_t>(hashes_[place]);
  }
  size_t shard(size_t place) const {
    return ShardOf(hashes_[place], shard_bits_);
  }
  // Returns the position of an id in the call. `place` is the id's index in the
  // order of the groups.
  uint32_t position(size_t place) const { return positions_[place]; }

 private:
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> ends_;
  int shard_bits_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_BATCH_H_
