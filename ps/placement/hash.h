// Maps the ids of a sparse table to shards.

#ifndef PENSTOCK_PS_PLACEMENT_HASH_H_
#define PENSTOCK_PS_PLACEMENT_HASH_H_

#include <cstdint>

namespace penstock::ps {

// Returns the hash by which an id is placed: fmix64, the 64-bit finaliser of
// MurmurHash3 (A. Appleby, public domain). The hash is part of the wire format,
// because clients and servers of any version and language must find an id at
// the same server. The hash has no key, so a client can choose ids that are all
// in one shard. Each server must therefore bound a shard's memory by its own
// budget.
inline uint64_t Fmix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

// Returns the shard of an id, out of `shards` (1 to 65536): the upper half of
// the hash, scaled. A hash table within a server should use other bits.
inline uint32_t ShardOf(uint64_t id, uint32_t shards) {
  return static_cast<uint32_t>(((Fmix64(id) >> 32) * shards) >> 32);
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_HASH_H_
