// Divides bundles into the messages of a stream, and joins such messages.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_BUNDLE_STREAM_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_BUNDLE_STREAM_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/destination.h"
#include "tensor_service/device.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/tensor.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {

// The default length of a stream's messages, in bytes. Long enough to make the
// cost of each message negligible, and short enough that the message in flight
// does not fill a pool.
inline constexpr size_t kStreamMessageBytes = 256 << 20;

// Limit the message length, in bytes. Other lengths are clamped to these
// limits. The shortest message has room for a header and some elements.
// Protobuf can read the longest message.
inline constexpr size_t kMinStreamMessageBytes = 4 << 10;
inline constexpr size_t kMaxStreamMessageBytes = 1 << 30;

// Divides one bundle into messages of at most about `max_message_bytes`; 0
// selects kStreamMessageBytes. A message is longer only if a name does not fit.
// The messages share the tensors' memory. Not thread-safe.
class BundleCutter {
 public:
  // The size from which a tensor gets a separate message, in bytes. The
  // receiver can keep such a tensor in the memory where it arrives. A smaller
  // tensor shares a message, because copying the tensor out costs less than a
  // message.
  static constexpr size_t kOwnMessageBytes = 256 << 10;

  BundleCutter(Bundle bundle, size_t max_message_bytes);

  bool done() const { return done_; }

  // Returns the next message, a BundlePart. Call it until done(). Returns the
  // errors of Encode().
  absl::StatusOr<grpc::ByteBuffer> Next();

 private:
  absl::StatusOr<grpc::ByteBuffer> NextPiece();
  size_t PieceBytes(const NamedTensor& named) const;

  const Bundle bundle_;
  const size_t max_message_bytes_;
  size_t next_ = 0;    // the first tensor that Next() has not returned whole
  size_t offset_ = 0;  // of the next piece in that tensor
  bool done_ = false;
};

// Joins the messages of one stream. Accepts any bytes.
//
// - A whole tensor shares the memory of its message, as Compact() allows.
// - Pieces of a tensor are copied once, to the heap.
// - A tensor in the peer's device memory is always copied: to the heap, or with
//   DeviceTensors::kKeep on the device, like OwnOnDevices(). Pieces are joined
//   where the first piece lies.
// - A tensor with a destination is copied to the destination instead, once.
//
// Not thread-safe.
class BundleJoiner {
 public:
  // Called before a tensor's memory is kept or allocated. Returns an error if
  // there is no room.
  using Reserve =
      std::function<absl::Status(const std::string& name, size_t held_bytes)>;

  // Makes a joiner, which accepts every tensor if `reserve` is null. The
  // destinations must outlive this object.
  explicit BundleJoiner(Reserve reserve = nullptr,
                        DeviceTensors device_tensors = DeviceTensors::kToHost,
                        absl::Span<Destination> destinations = {});

  // Adds the next message. Destroy the joiner after an error. Returns
  //
  // - INVALID_ARGUMENT, with the reason, if the message is no BundlePart or
  //   does not continue the stream;
  // - an error of `reserve` or of DeviceMemory;
  // - RESOURCE_EXHAUSTED if there is no memory.
  absl::Status Add(const grpc::ByteBuffer& message);

  // Returns the bundle, once the stream has ended. Returns DATA_LOSS if the
  // last message is missing.
  absl::StatusOr<Bundle> Take();

 private:
  // A tensor with missing pieces.
  struct Draft {
    NamedTensor named;
    size_t filled = 0;                   // bytes
    Destination* destination = nullptr;  // the owner of the memory of `named`
  };

  absl::Status AddWhole(const Bundle& bundle);
  absl::Status AddPiece(const v1::Piece& piece, const Bundle& bundle);
  // Starts a draft on `device`, or on the heap.
  absl::Status StartDraft(const v1::Piece& piece, const std::string& name,
                          const Device& device);
  absl::Status AllocateDraft(const v1::Piece& piece, const std::string& name,
                             const Device& device, size_t size);
  // Adds the draft, which must be complete, to the bundle.
  void EndDraft();
  bool IsOfDraft(const v1::Piece& piece, const std::string& name) const;

  const Reserve reserve_;
  const DeviceTensors device_tensors_;
  DestinationSet destinations_;
  Bundle bundle_;
  Draft draft_;
  bool has_draft_ = false;
  bool is_complete_ = false;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_BUNDLE_STREAM_H_
