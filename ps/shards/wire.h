// Converts the messages between replicas from and to bytes.

#ifndef PENSTOCK_PS_SHARDS_WIRE_H_
#define PENSTOCK_PS_SHARDS_WIRE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/replication/messages.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/training.h"
#include "ps/wire/replicate.pb.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A piece of the shard file of a snapshot.
struct SnapshotPiece {
  uint64_t id = 0;
  uint64_t offset = 0;
  tensor::Tensor bytes;  // uint8
};

// The state of a snapshot apart from its shard file.
struct SnapshotState {
  uint64_t id = 0;
  uint64_t bytes = 0;     // of the shard file
  uint64_t checksum = 0;  // of its footer
  ServerDefinition definition;
  uint64_t instance = 0;
  uint64_t hash_seed = 0;
  RestoredModel restored;
};

// A message from a primary. One of the optional fields is set.
struct ReplicateMessage {
  replication::Envelope envelope;
  absl::optional<replication::Append> append;
  absl::optional<SnapshotPiece> piece;
  absl::optional<SnapshotState> restore;
  absl::optional<replication::Snapshot> snapshot;
  uint64_t snapshot_id = 0;  // of `snapshot`
};

// Limit what a message from another process may contain.
inline constexpr size_t kMaxEntries = 65536;  // of one message
inline constexpr size_t kMaxPieceBytes = size_t{1} << 20;
inline constexpr size_t kMaxBuildName = 256;
inline constexpr uint64_t kMaxSeq = uint64_t{1} << 60;

// Encode a message. The tensors of pushes are not copied. Return the errors of
// tensor::Encode().
absl::StatusOr<grpc::ByteBuffer> ToBytes(const replication::Append& append);
absl::StatusOr<grpc::ByteBuffer> ToBytes(const replication::Envelope& envelope,
                                         const SnapshotPiece& piece);
absl::StatusOr<grpc::ByteBuffer> ToBytes(const replication::Envelope& envelope,
                                         const SnapshotState& state);
// Encodes a snapshot without its history, which the members in SnapshotState
// replace.
absl::StatusOr<grpc::ByteBuffer> ToBytes(const replication::Snapshot& snapshot,
                                         uint64_t id);

// Decodes an untrusted message. Returns INVALID_ARGUMENT, with the reason, if
// the bytes are malformed or exceed a limit.
absl::StatusOr<ReplicateMessage> MessageIn(const grpc::ByteBuffer& bytes);

grpc::ByteBuffer ToBytes(const replication::Answer& answer);
// Decodes an untrusted answer. Returns INVALID_ARGUMENT for malformed bytes.
absl::StatusOr<replication::Answer> AnswerIn(const grpc::ByteBuffer& bytes);

// Returns a number that differs between different models.
uint64_t FingerprintOf(const ServerDefinition& definition);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_WIRE_H_
