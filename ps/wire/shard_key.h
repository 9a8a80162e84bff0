// Names the shard of a call, if servers replicate their shards.

#ifndef PENSTOCK_PS_WIRE_SHARD_KEY_H_
#define PENSTOCK_PS_WIRE_SHARD_KEY_H_

namespace penstock::ps {

// The key of the metadata with the number of the called shard, in decimal. A
// call without the key is for the server's own shard. Servers without replicas
// ignore the key.
inline constexpr char kShardKey[] = "penstock-shard";

// Begins the message of a call that was refused because another server is the
// primary of the shard. The code is UNAVAILABLE: repeat the call, at the server
// that GetView() names.
inline constexpr char kNotPrimary[] = "this server does not lead the shard";

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_WIRE_SHARD_KEY_H_
