// How a transport learns of memory that tensors are to be received into.
//
// A template, because tensor_service knows no transport: the program that has
// one names what it offers.

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

// Memory that a transport may receive parts of an answer into. On a device,
// `data` is an address there.
struct ReceiveRange {
  void* data = nullptr;
  size_t size = 0;
  bool on_device = false;
};

// Ranges that a transport knows. Thread-safe, but for AttachTo().
class PostedRanges {
 public:
  virtual ~PostedRanges() = default;
  // Gives the ranges to a call that is prepared and not started.
  virtual void AttachTo(grpc::ClientContext* context) const = 0;
  // Whether a call may yet write there, or has an answer there that somebody
  // holds.
  virtual bool in_use() const = 0;
};

// Receives into memory of the program's, as far as it can: an answer's slices
// then lie there. Thread-safe.
class DirectReceiver {
 public:
  virtual ~DirectReceiver() = default;
  // `owner` keeps the ranges valid, and is held as long as anything may be
  // written there. `often`: for many calls, one after another. `anywhere`: the
  // call takes slices that lie on a device; it does so, too, if a range does.
  virtual std::shared_ptr<PostedRanges> Post(
      const std::vector<ReceiveRange>& ranges,
      std::shared_ptr<const void> owner, bool often, bool anywhere) = 0;
  // Says that this process's methods whose paths, "/package.Service/Method",
  // begin so take requests with slices that lie on a device. Others get them
  // copied to the host. For good; before the server is started.
  virtual void AcceptAt(absl::string_view path_prefix) = 0;
};

// The receiver that destinations are posted with, from now on; null, as at
// first: none, so that tensors are copied to them. Lives as long as the
// process. Thread-safe.
DirectReceiver* GetDirectReceiver();
void SetDirectReceiver(DirectReceiver* receiver);

// Whether a slice of `message` lies in one of `ranges`, wholly or in part.
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

// Returns the receiver of a transport, which lives as long as the process:
//
//   #include "penstock/destinations.h"
//   tensor::SetDirectReceiver(
//       tensor::DirectReceiverBy<penstock::Destinations>());
//
// Over verbs, tensors of 64 KiB and more are then read straight into their
// destinations.
//
// `accept` is what AcceptAt() calls. A server that takes tensors on devices
// names it before it makes its services:
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
