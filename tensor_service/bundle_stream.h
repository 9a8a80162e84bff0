// Cuts bundles into the messages of a stream, and joins them again.

#ifndef PENSTOCK_TENSOR_SERVICE_BUNDLE_STREAM_H_
#define PENSTOCK_TENSOR_SERVICE_BUNDLE_STREAM_H_

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

// How long the messages of a stream are, unless the caller says. Long enough
// that a message's own costs do not count, short enough that the one in flight
// does not fill a pool. In bytes.
inline constexpr size_t kStreamMessageBytes = 256 << 20;

// Other lengths are brought into these limits: a header and some elements fit
// into the shortest, and protobuf can read the longest. In bytes.
inline constexpr size_t kMinStreamMessageBytes = 4 << 10;
inline constexpr size_t kMaxStreamMessageBytes = 1 << 30;

// Gives the messages of one bundle, one after the other, of about
// `max_message_bytes` at most (0 is kStreamMessageBytes); they are longer only
// where a name does not fit. They share the tensors' memory. Not thread-safe.
class BundleCutter {
 public:
  // A tensor of this size has a message of its own. The receiver can then keep
  // it where it arrives, instead of copying it out of a message of several
  // tensors; below, the copy is cheaper than a message. In bytes.
  static constexpr size_t kOwnMessageBytes = 256 << 10;

  BundleCutter(Bundle bundle, size_t max_message_bytes);

  bool done() const { return done_; }

  // Returns the next message, a BundlePart. Call it until done(). Returns
  // errors as Encode() does.
  absl::StatusOr<grpc::ByteBuffer> Next();

 private:
  absl::StatusOr<grpc::ByteBuffer> NextPiece();
  size_t PieceBytes(const NamedTensor& named) const;

  const Bundle bundle_;
  const size_t max_message_bytes_;
  size_t next_ = 0;    // the first tensor that has not been given
  size_t offset_ = 0;  // of the next piece in it
  bool done_ = false;
};

// Joins the messages of one stream. Accepts any bytes. Whole tensors share the
// memory of their message, as Compact() allows; pieces are copied once, into
// memory of the heap. What lies on a device, in memory of the peer's, is copied
// in any case: to the heap, or, with DeviceTensors::kKeep, on the device, as
// OwnOnDevices() does; a tensor in pieces lies where the first of them does.
// A tensor that has one of the destinations is copied there instead, once. Not
// thread-safe.
class BundleJoiner {
 public:
  // Asked before the memory of each tensor is kept or allocated. Returns an
  // error if there is no room.
  using Reserve =
      std::function<absl::Status(const std::string& name, size_t held_bytes)>;

  // Without `reserve`, takes everything. The destinations must outlive this.
  explicit BundleJoiner(Reserve reserve = nullptr,
                        DeviceTensors device_tensors = DeviceTensors::kToHost,
                        absl::Span<Destination> destinations = {});

  // Takes the next message. Returns INVALID_ARGUMENT, which says what is wrong,
  // if it is no BundlePart, or does not follow those before it; an error of
  // `reserve` or of DeviceMemory; or RESOURCE_EXHAUSTED if there is no memory.
  // After an error, do nothing but drop the joiner.
  absl::Status Add(const grpc::ByteBuffer& message);

  // Returns the bundle, at the end of the stream. Returns DATA_LOSS if the last
  // message has not come.
  absl::StatusOr<Bundle> Take();

 private:
  // A tensor of which pieces are missing.
  struct Draft {
    NamedTensor named;
    size_t filled = 0;                   // bytes
    Destination* destination = nullptr;  // of which `named` has the memory
  };

  absl::Status AddWhole(const Bundle& bundle);
  absl::Status AddPiece(const v1::Piece& piece, const Bundle& bundle);
  // Starts one on `device`, or on the heap.
  absl::Status StartDraft(const v1::Piece& piece, const std::string& name,
                          const Device& device);
  absl::Status AllocateDraft(const v1::Piece& piece, const std::string& name,
                             const Device& device, size_t size);
  // Adds the draft, which is complete, to the bundle.
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

#endif  // PENSTOCK_TENSOR_SERVICE_BUNDLE_STREAM_H_
