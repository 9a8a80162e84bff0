// How a transport learns of memory that tensors are to be received into.
//
// A template, because tensor_service knows no transport: the program that has
// one names what it offers.

#ifndef PENSTOCK_TENSOR_SERVICE_DIRECT_RECEIVE_H_
#define PENSTOCK_TENSOR_SERVICE_DIRECT_RECEIVE_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::tensor {

// Memory that a transport may receive parts of an answer into.
struct ReceiveRange {
  void* data = nullptr;
  size_t size = 0;
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
  // written there. `often`: for many calls, one after another.
  virtual std::shared_ptr<PostedRanges> Post(
      const std::vector<ReceiveRange>& ranges,
      std::shared_ptr<const void> owner, bool often) = 0;
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
  std::shared_ptr<PostedRanges> Post(const std::vector<ReceiveRange>& ranges,
                                     std::shared_ptr<const void> owner,
                                     bool often) override {
    std::vector<typename Destinations::Range> all;
    for (const ReceiveRange& range : ranges) {
      all.push_back({range.data, range.size});
    }
    using Use = typename Destinations::Use;
    return std::make_shared<Posted>(Destinations::Make(
        all, std::move(owner), often ? Use::kOften : Use::kOnce));
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
};

// Returns the receiver of a transport, which lives as long as the process:
//
//   #include "penstock/destinations.h"
//   tensor::SetDirectReceiver(
//       tensor::DirectReceiverBy<penstock::Destinations>());
//
// Over verbs, tensors of 64 KiB and more are then read straight into their
// destinations.
template <typename Destinations>
DirectReceiver* DirectReceiverBy() {
  static auto* const receiver = new DirectReceiverOf<Destinations>;
  return receiver;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DIRECT_RECEIVE_H_
