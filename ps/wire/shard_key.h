// Names the shard of a call, if shards are replicated.

#ifndef PENSTOCK_PS_WIRE_SHARD_KEY_H_
#define PENSTOCK_PS_WIRE_SHARD_KEY_H_

namespace penstock::ps {

// The metadata key under which a call has the number of its shard, in decimal.
// A call without the key is for the server's own shard. Servers without
// replicas ignore the key.
inline constexpr char kShardKey[] = "penstock-shard";

// The beginning of the message of a call that was refused because another
// server is the primary of the shard. The code is UNAVAILABLE. Repeat the call
// at the server that GetView() names.
inline constexpr char kNotPrimary[] = "this server does not lead the shard";

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_WIRE_SHARD_KEY_H_
