// Which shard an id of a sparse table is in.

#ifndef PENSTOCK_PS_PLACEMENT_HASH_H_
#define PENSTOCK_PS_PLACEMENT_HASH_H_

#include <cstdint>

namespace penstock::ps {

// The 64-bit finaliser of MurmurHash3 (A. Appleby, public domain), "fmix64". It
// is a part of the wire format: clients and servers, of any version and in any
// language, find an id at the same server by it. It has no key, so whoever
// chooses ids can choose them all of one shard; what a server holds of a shard
// is for its own budget to bound.
inline uint64_t Fmix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

// Returns the shard of an id, of `shards`, 1 to 65536: the upper half of its
// hash, scaled. A table that is hashed again within a server had better not use
// the same bits.
inline uint32_t ShardOf(uint64_t id, uint32_t shards) {
  return static_cast<uint32_t>(((Fmix64(id) >> 32) * shards) >> 32);
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_HASH_H_
