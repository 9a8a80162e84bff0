// Tells a transport about memory that tensors are received into.
//
// This is a template, because tensor_service knows no transport: a program with
// a transport provides the template's argument.

#ifndef PENSTOCK_TENSOR_SERVICE_DIRECT_RECEIVE_H_
#define PENSTOCK_TENSOR_SERVICE_DIRECT_RECEIVE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::tensor {

// Memory into which a transport may receive parts of an answer. If `on_device`,
// `data` is an address on a device.
struct ReceiveRange {
  void* data = nullptr;
  size_t size = 0;
  bool on_device = false;
};

// Memory ranges that a transport knows. Thread-safe, except for AttachTo().
class PostedRanges {
 public:
  virtual ~PostedRanges() = default;
  // Attaches the ranges to a call that is prepared but not started.
  virtual void AttachTo(grpc::ClientContext* context) const = 0;
  // Returns true while a call may still write to the ranges, or while somebody
  // holds an answer in them.
  virtual bool in_use() const = 0;
};

// Receives into memory of the program if possible. Slices of an answer are then
// in that memory. Thread-safe.
class DirectReceiver {
 public:
  virtual ~DirectReceiver() = default;
  // Registers memory ranges. `owner` keeps the ranges valid, and is held as
  // long as anything may write to the ranges. `often` is true if many
  // consecutive calls will use the ranges. If `anywhere` is true, or if a range
  // is on a device, the answer's slices may be on a device.
  virtual std::shared_ptr<PostedRanges> Post(
      const std::vector<ReceiveRange>& ranges,
      std::shared_ptr<const void> owner, bool often, bool anywhere) = 0;
  // Lets requests of some methods have slices that are on a device. The methods
  // are those whose path, "/package.Service/Method", begins with `path_prefix`.
  // For other methods, slices are copied to the host. Permanent; call it before
  // the server is started.
  virtual void AcceptAt(absl::string_view path_prefix) = 0;
};

// Return and set the receiver of this process. Null, the initial value, means
// that received tensors are copied to their destinations. A receiver must live
// as long as the process. Thread-safe.
DirectReceiver* GetDirectReceiver();
void SetDirectReceiver(DirectReceiver* receiver);

// Returns true if a slice of `message` overlaps one of `ranges`.
bool LiesIn(const grpc::ByteBuffer& message,
            const std::vector<ReceiveRange>& ranges);

// See DirectReceiverBy().
template <typename Destinations>
class DirectReceiverOf final : public DirectReceiver {
 public:
  using Accept = void (*)(const std::string& path_prefix);

  std::shared_ptr<PostedRanges> Post(const std::vector<ReceiveRange>& ranges,
                                     std::shared_ptr<const void> owner,
                                     bool often, bool anywhere) override {
    using Kind = typename Destinations::Kind;
    std::vector<typename Destinations::Range> all;
    for (const ReceiveRange& range : ranges) {
      all.push_back({range.data, range.size,
                     range.on_device ? Kind::kDevice : Kind::kHost});
    }
    using Use = typename Destinations::Use;
    using Slices = typename Destinations::Slices;
    return std::make_shared<Posted>(Destinations::Make(
        all, std::move(owner), often ? Use::kOften : Use::kOnce,
        anywhere ? Slices::kAnywhere : Slices::kHost));
  }

  void AcceptAt(absl::string_view path_prefix) override {
    const Accept accept = accept_.load(std::memory_order_acquire);
    if (accept != nullptr) accept(std::string(path_prefix));
  }

  void set_accept(Accept accept) {
    accept_.store(accept, std::memory_order_release);
  }

 private:
  class Posted final : public PostedRanges {
   public:
    explicit Posted(std::shared_ptr<Destinations> destinations)
        : destinations_(std::move(destinations)) {}
    void AttachTo(grpc::ClientContext* context) const override {
      destinations_->AttachTo(context);
    }
    bool in_use() const override { return destinations_->in_use(); }

   private:
    const std::shared_ptr<Destinations> destinations_;
  };

  std::atomic<Accept> accept_{nullptr};
};

// Returns the receiver of a transport. The receiver lives as long as the
// process:
//
//   #include "penstock/destinations.h"
//   tensor::SetDirectReceiver(
//       tensor::DirectReceiverBy<penstock::Destinations>());
//
// Over verbs, tensors of 64 KiB and more are then received directly into their
// destinations.
//
// AcceptAt() calls `accept`. A server that accepts tensors on devices must
// provide `accept` before it makes its services:
//
//   #include "penstock/device_slices.h"
//   tensor::SetDirectReceiver(tensor::DirectReceiverBy<penstock::Destinations>(
//       &penstock::AcceptDeviceSlices));
template <typename Destinations>
DirectReceiver* DirectReceiverBy(
    void (*accept)(const std::string& path_prefix) = nullptr) {
  static auto* const receiver = new DirectReceiverOf<Destinations>;
  if (accept != nullptr) receiver->set_accept(accept);
  return receiver;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DIRECT_RECEIVE_H_
