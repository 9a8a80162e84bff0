// A call whose messages may be in device memory.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_CALL_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_CALL_H_

#include <atomic>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/iomgr/call_combiner.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/transport.h"
#include "transport/grpc/filters/device_wait.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/transport.h"

namespace penstock {
namespace core {

// The call data of the filter in device_filter.h. gRPC's call combiner guards
// the data: all batches and closures of a call run one after another.
class DeviceCall {
 public:
  // Makes the filter's part of a call. `transport` is the connection's Penstock
  // transport. Null if the connection has another transport, or if its channel
  // compresses messages by default.
  DeviceCall(bool is_client, Transport* transport, grpc_call_element* elem,
             const grpc_call_element_args& args);

  void StartBatch(grpc_transport_stream_op_batch* batch);

 private:
  using Batch = grpc_transport_stream_op_batch;

  // The part for sending. Holds a batch until its message is ready, and also
  // holds all batches that must follow that batch. Never delays other batches
  // or the call's cancellation, because the device's work may depend on them.
  bool MustComeAfterKept(const Batch& batch) const;
  // Keep a batch, or pass the batch on, and release the call combiner.
  void KeepUntilReady(Batch* batch);
  void Pass(Batch* batch);
  void Fail(Batch* batch, const grpc_error_handle& error);
  // Stops waiting because the call has ended with `error`. Fails the kept
  // batches later.
  void EndWaiting(const grpc_error_handle& error);
  grpc_error_handle WhyEnded() const;
  // Makes the call combiner report cancellations of a client's call, including
  // cancellations that come from below this filter.
  void WatchCancellation();
  // Passes the kept batches on if the kept message is ready. Fails the batches
  // with `error` if the message will never be ready.
  void Resume(const grpc_error_handle& error);
  // Copies to the host all device slices of the batch's message that the
  // transport cannot send from the device.
  absl::Status Prepare(Batch* batch);
  void LookAtInitialMetadata(const Batch& batch);

  // Functions for receiving.
  void StartReceives(Batch* batch);
  void OnInitialMetadata(const grpc_error_handle& error);
  void OnMessage(const grpc_error_handle& error);
  void OnEnd(const grpc_error_handle& error);

  // Makes a closure that calls `method` with the closure's error.
  template <void (DeviceCall::*method)(const grpc_error_handle&)>
  static void Run(void* arg, grpc_error_handle error);
  static void EnterAndResume(void* arg, grpc_error_handle error);
  static void OnCancelled(void* arg, grpc_error_handle error);
  static void EndInCombiner(void* arg, grpc_error_handle error);
  static void StartKept(void* arg, grpc_error_handle error);
  static void FailInCombiner(void* arg, grpc_error_handle error);

  const bool is_client_;
  Transport* const transport_;
  grpc_call_element* const elem_;
  grpc_call_stack* const call_stack_;
  grpc_core::CallCombiner* const combiner_;

  bool has_sent_metadata_ = false;
  bool compresses_ =
      true;  // true if messages are compressed; set by the metadata
  absl::InlinedVector<Batch*, 2> kept_;
  std::shared_ptr<DeviceWait> wait_;
  absl::optional<grpc_error_handle> ended_;
  grpc_closure on_ready_;
  grpc_closure resume_;
  std::atomic<bool> is_watching_{false};
  grpc_closure on_cancelled_;
  grpc_closure end_in_combiner_;

  bool accepts_ = false;       // the receiver accepts device slices
  grpc_error_handle failure_;  // of a received message
  grpc_metadata_batch* initial_metadata_ = nullptr;
  absl::optional<grpc_core::SliceBuffer>* message_ = nullptr;
  // The closures that replace the application's closures. Each on_* ends by
  // calling the replaced closure, then_*.
  grpc_closure on_initial_metadata_;
  grpc_closure on_message_;
  grpc_closure on_end_;
  grpc_closure* then_initial_metadata_ = nullptr;
  grpc_closure* then_message_ = nullptr;
  grpc_closure* then_end_ = nullptr;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_CALL_H_
