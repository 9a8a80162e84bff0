#include "transport/grpc/filters/device_call.h"

#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "src/core/lib/transport/transport_impl.h"
#include "transport/grpc/filters/accepted_paths.h"
#include "transport/grpc/filters/device_slices.h"
#include "transport/grpc/internal/call_destinations.h"
#include "transport/grpc/internal/errors.h"
#include "transport/memory/destinations.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace core {
namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();

bool Compresses(const grpc_metadata_batch& initial_metadata) {
  return initial_metadata.get(grpc_core::GrpcInternalEncodingRequest())
             .value_or(GRPC_COMPRESS_NONE) != GRPC_COMPRESS_NONE;
}

}  // namespace

template <void (DeviceCall::*method)(const grpc_error_handle&)>
void DeviceCall::Run(void* arg, grpc_error_handle error) {
  (static_cast<DeviceCall*>(arg)->*method)(error);
}

DeviceCall::DeviceCall(bool is_client, Transport* transport,
                       grpc_call_element* elem,
                       const grpc_call_element_args& args)
    : is_client_(is_client),
      transport_(transport),
      elem_(elem),
      call_stack_(args.call_stack),
      combiner_(args.call_combiner) {
  GRPC_CLOSURE_INIT(&on_ready_, EnterAndResume, this, nullptr);
  GRPC_CLOSURE_INIT(&resume_, Run<&DeviceCall::Resume>, this, nullptr);
  GRPC_CLOSURE_INIT(&on_cancelled_, OnCancelled, this, nullptr);
  GRPC_CLOSURE_INIT(&end_in_combiner_, EndInCombiner, this, nullptr);
  GRPC_CLOSURE_INIT(&on_initial_metadata_, Run<&DeviceCall::OnInitialMetadata>,
                    this, nullptr);
  GRPC_CLOSURE_INIT(&on_message_, Run<&DeviceCall::OnMessage>, this, nullptr);
  GRPC_CLOSURE_INIT(&on_end_, Run<&DeviceCall::OnEnd>, this, nullptr);
}

void DeviceCall::StartBatch(Batch* batch) {
  if (batch->cancel_stream) {
    EndWaiting(batch->payload->cancel_stream.cancel_error);
    return Pass(batch);
  }
  if (!kept_.empty() && MustComeAfterKept(*batch)) {
    kept_.push_back(batch);
    return GRPC_CALL_COMBINER_STOP(combiner_, "behind a device");
  }
  if (!batch->send_message) return Pass(batch);
  const grpc_core::SliceBuffer& message =
      *batch->payload->send_message.send_message;
  if (!HasDeviceSlices(message)) return Pass(batch);
  const absl::optional<absl::Status> ready = PollDeviceSlices(message);
  if (!ready.has_value()) return KeepUntilReady(batch);
  if (!ready->ok()) return Fail(batch, ToError(*ready));
  Pass(batch);
}

bool DeviceCall::MustComeAfterKept(const Batch& batch) const {
  return batch.send_initial_metadata || batch.send_message ||
         batch.send_trailing_metadata || (is_client_ && !has_sent_metadata_);
}

void DeviceCall::KeepUntilReady(Batch* batch) {
  if (ended_.has_value()) return Fail(batch, WhyEnded());
  // Holds the call stack until Resume() has returned.
  GRPC_CALL_STACK_REF(call_stack_, "device");
  wait_ =
      DeviceWait::Start(*batch->payload->send_message.send_message, &on_ready_);
  if (wait_ == nullptr) {
    Fail(batch, ErrorWithCode("cannot wait for a device: too many threads",
                              GRPC_STATUS_RESOURCE_EXHAUSTED));
    return GRPC_CALL_STACK_UNREF(call_stack_, "device");
  }
  kept_.push_back(batch);
  if (is_client_) WatchCancellation();
  GRPC_CALL_COMBINER_STOP(combiner_, "wait for a device");
}

// Watches the call combiner for cancellations of the call. A cancellation from
// above arrives in a batch, which this filter sees. A cancellation from below,
// such as the deadline of a direct channel, does not pass this filter. The call
// combiner reports a cancellation of either kind, once for each call. The
// combiner calls only the last closure that was set with the cancellation, and
// earlier closures with OK.
void DeviceCall::WatchCancellation() {
  if (is_watching_.exchange(true)) return;
  GRPC_CALL_STACK_REF(call_stack_, "device's cancellation");
  combiner_->SetNotifyOnCancel(&on_cancelled_);
}

void DeviceCall::OnCancelled(void* arg, grpc_error_handle error) {
  auto* const call = static_cast<DeviceCall*>(arg);
  if (!error.ok()) {
    GRPC_CALL_COMBINER_START(call->combiner_, &call->end_in_combiner_, error,
                             "cancelled");
    return;
  }
  grpc_call_stack* const call_stack = call->call_stack_;
  call->is_watching_ = false;
  GRPC_CALL_STACK_UNREF(call_stack, "device's cancellation");
}

void DeviceCall::EndInCombiner(void* arg, grpc_error_handle error) {
  auto* const call = static_cast<DeviceCall*>(arg);
  call->EndWaiting(error);
  GRPC_CALL_COMBINER_STOP(call->combiner_, "cancelled");
  GRPC_CALL_STACK_UNREF(call->call_stack_, "device's cancellation");
}

void DeviceCall::EnterAndResume(void* arg, grpc_error_handle error) {
  auto* const call = static_cast<DeviceCall*>(arg);
  GRPC_CALL_COMBINER_START(call->combiner_, &call->resume_, error,
                           "a device is ready");
}

void DeviceCall::Resume(const grpc_error_handle& error) {
  const std::shared_ptr<DeviceWait> wait = std::move(wait_);  // destroyed last
  grpc_call_stack* const call_stack = call_stack_;
  absl::InlinedVector<Batch*, 2> kept;
  kept.swap(kept_);
  for (size_t i = 1; i < kept.size(); ++i) {
    kept[i]->handler_private.extra_arg = this;
    GRPC_CLOSURE_INIT(&kept[i]->handler_private.closure, StartKept, kept[i],
                      nullptr);
    GRPC_CALL_COMBINER_START(combiner_, &kept[i]->handler_private.closure,
                             absl::OkStatus(), "behind a device");
  }
  if (kept.empty()) {  // the call has ended
    GRPC_CALL_COMBINER_STOP(combiner_, "a device is ready");
  } else if (error.ok()) {
    Pass(kept[0]);
  } else {
    Fail(kept[0], error);
  }
  GRPC_CALL_STACK_UNREF(call_stack, "device");
}

void DeviceCall::StartKept(void* arg, grpc_error_handle) {
  auto* const batch = static_cast<Batch*>(arg);
  static_cast<DeviceCall*>(batch->handler_private.extra_arg)->StartBatch(batch);
}

void DeviceCall::EndWaiting(const grpc_error_handle& error) {
  ended_ = error;
  if (kept_.empty()) return;
  wait_->Abandon();
  absl::InlinedVector<Batch*, 2> kept;
  kept.swap(kept_);
  for (Batch* batch : kept) {
    batch->handler_private.extra_arg = this;
    GRPC_CLOSURE_INIT(&batch->handler_private.closure, FailInCombiner, batch,
                      nullptr);
    GRPC_CALL_COMBINER_START(combiner_, &batch->handler_private.closure,
                             WhyEnded(), "ended");
  }
}

grpc_error_handle DeviceCall::WhyEnded() const {
  if (!ended_->ok()) return *ended_;
  return ErrorWithCode("the call has ended before its message was sent",
                       GRPC_STATUS_CANCELLED);
}

void DeviceCall::FailInCombiner(void* arg, grpc_error_handle error) {
  auto* const batch = static_cast<Batch*>(arg);
  static_cast<DeviceCall*>(batch->handler_private.extra_arg)
      ->Fail(batch, error);
}

void DeviceCall::Fail(Batch* batch, const grpc_error_handle& error) {
  grpc_transport_stream_op_batch_finish_with_failure(batch, error, combiner_);
}

void DeviceCall::Pass(Batch* batch) {
  if (batch->send_initial_metadata) LookAtInitialMetadata(*batch);
  if (batch->send_message &&
      HasDeviceSlices(*batch->payload->send_message.send_message)) {
    const absl::Status prepared = Prepare(batch);
    if (!prepared.ok()) return Fail(batch, ToError(prepared));
  }
  StartReceives(batch);
  grpc_call_next_op(elem_, batch);
}

void DeviceCall::LookAtInitialMetadata(const Batch& batch) {
  has_sent_metadata_ = true;
  grpc_transport_stream_op_batch_payload* const payload = batch.payload;
  compresses_ =
      Compresses(*payload->send_initial_metadata.send_initial_metadata);
  if (!is_client_) return;
  const auto destinations = DestinationsOf(payload->context);
  accepts_ = destinations != nullptr && destinations->anywhere();
}

absl::Status DeviceCall::Prepare(Batch* batch) {
  const auto& send = batch->payload->send_message;
  const bool is_compressed = (send.flags & GRPC_WRITE_INTERNAL_COMPRESS) != 0;
  const bool leaves = transport_ != nullptr && !compresses_ && !is_compressed &&
                      transport_->TakesDeviceMemory();
  return CopyDeviceSlices(leaves ? memory::kMinDeviceBytes : kAll,
                          send.send_message);
}

void DeviceCall::StartReceives(Batch* batch) {
  grpc_transport_stream_op_batch_payload* const payload = batch->payload;
  // Reads the path only on a server. On a client, the program has already said
  // whether the call accepts device slices.
  if (batch->recv_initial_metadata && !is_client_) {
    auto& receive = payload->recv_initial_metadata;
    initial_metadata_ = receive.recv_initial_metadata;
    then_initial_metadata_ = receive.recv_initial_metadata_ready;
    receive.recv_initial_metadata_ready = &on_initial_metadata_;
  }
  if (batch->recv_message) {
    auto& receive = payload->recv_message;
    message_ = receive.recv_message;
    then_message_ = receive.recv_message_ready;
    receive.recv_message_ready = &on_message_;
  }
  if (batch->recv_trailing_metadata) {
    auto& receive = payload->recv_trailing_metadata;
    then_end_ = receive.recv_trailing_metadata_ready;
    receive.recv_trailing_metadata_ready = &on_end_;
  }
}

// Handles the initial metadata. On a server, reads the call's path, to find out
// if the call accepts device slices.
void DeviceCall::OnInitialMetadata(const grpc_error_handle& error) {
  if (error.ok()) {
    const grpc_core::Slice* const path =
        initial_metadata_->get_pointer(grpc_core::HttpPathMetadata());
    accepts_ = path != nullptr && AcceptsDeviceSlices(path->as_string_view());
  }
  grpc_core::Closure::Run(DEBUG_LOCATION, then_initial_metadata_, error);
}

void DeviceCall::OnMessage(const grpc_error_handle& error) {
  grpc_error_handle result = error;
  if (error.ok() && !accepts_ && message_->has_value() &&
      HasDeviceSlices(**message_)) {
    const absl::Status copied = CopyDeviceSlices(kAll, &**message_);
    if (!copied.ok()) {
      message_->reset();
      result = failure_ = ToError(copied);
    }
  }
  grpc_core::Closure::Run(DEBUG_LOCATION, std::exchange(then_message_, nullptr),
                          result);
}

// Handles the end of the call. Fails the call if a received message was lost,
// even if the call's status is OK. Ends the wait for a kept message, because no
// code will read it. On a server, only this function learns of a client's
// cancellation, a deadline, a lost connection, or Server::Shutdown().
void DeviceCall::OnEnd(const grpc_error_handle& error) {
  EndWaiting(error);
  grpc_core::Closure::Run(DEBUG_LOCATION, then_end_,
                          error.ok() ? failure_ : error);
}

}  // namespace core
}  // namespace penstock
