#include "transport/grpc/filters/recording_filter.h"

#include <limits>
#include <new>

#include "absl/types/optional.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/channel/channel_stack_builder.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/surface/channel_init.h"
#include "src/core/lib/surface/channel_stack_type.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "src/core/lib/transport/transport.h"
#include "transport/record/recorder.h"

namespace penstock {
namespace core {
namespace {

// The filter's data of a connection.
struct ChannelData {
  record::Recorder* recorder;
  uint64_t client;
};

// The filter's data of a call. gRPC's call combiner guards the data: all
// batches and closures of a call run one after another.
struct CallData {
  explicit CallData(grpc_call_element* elem);

  record::RecordedCall call;
  grpc_metadata_batch* initial_metadata = nullptr;
  absl::optional<grpc_core::SliceBuffer>* message = nullptr;
  // The closures that replace the application's closures. Each on_* ends by
  // calling the replaced closure, then_*.
  grpc_closure on_initial_metadata;
  grpc_closure on_message;
  grpc_closure on_end;
  grpc_closure* then_initial_metadata = nullptr;
  grpc_closure* then_message = nullptr;
  grpc_closure* then_end = nullptr;
};

CallData* Of(grpc_call_element* elem) {
  return static_cast<CallData*>(elem->call_data);
}

void OnInitialMetadata(void* arg, grpc_error_handle error) {
  auto* const elem = static_cast<grpc_call_element*>(arg);
  CallData* const data = Of(elem);
  if (error.ok()) {
    const auto* const channel =
        static_cast<const ChannelData*>(elem->channel_data);
    const grpc_core::Slice* const path =
        data->initial_metadata->get_pointer(grpc_core::HttpPathMetadata());
    if (path != nullptr) {
      data->call.Begin(channel->recorder, channel->client,
                       path->as_string_view());
    }
  }
  grpc_core::Closure::Run(DEBUG_LOCATION, data->then_initial_metadata, error);
}

void OnMessage(void* arg, grpc_error_handle error) {
  CallData* const data = Of(static_cast<grpc_call_element*>(arg));
  if (error.ok() && data->message->has_value()) {
    data->call.Received((*data->message)->Length());
  }
  grpc_core::Closure::Run(DEBUG_LOCATION, data->then_message, error);
}

// Ends the record of a call. If the server has not sent a status yet, the call
// was cancelled or its connection broke. The client does not see a status that
// the handler returns later.
void OnEnd(void* arg, grpc_error_handle error) {
  CallData* const data = Of(static_cast<grpc_call_element*>(arg));
  data->call.End(GRPC_STATUS_CANCELLED);
  grpc_core::Closure::Run(DEBUG_LOCATION, data->then_end, error);
}

CallData::CallData(grpc_call_element* elem) {
  GRPC_CLOSURE_INIT(&on_initial_metadata, OnInitialMetadata, elem, nullptr);
  GRPC_CLOSURE_INIT(&on_message, OnMessage, elem, nullptr);
  GRPC_CLOSURE_INIT(&on_end, OnEnd, elem, nullptr);
}

void StartBatch(grpc_call_element* elem,
                grpc_transport_stream_op_batch* batch) {
  CallData* const data = Of(elem);
  grpc_transport_stream_op_batch_payload* const payload = batch->payload;
  if (batch->recv_initial_metadata) {
    auto& receive = payload->recv_initial_metadata;
    data->initial_metadata = receive.recv_initial_metadata;
    data->then_initial_metadata = receive.recv_initial_metadata_ready;
    receive.recv_initial_metadata_ready = &data->on_initial_metadata;
  }
  if (batch->recv_message) {
    auto& receive = payload->recv_message;
    data->message = receive.recv_message;
    data->then_message = receive.recv_message_ready;
    receive.recv_message_ready = &data->on_message;
  }
  if (batch->recv_trailing_metadata) {
    auto& receive = payload->recv_trailing_metadata;
    data->then_end = receive.recv_trailing_metadata_ready;
    receive.recv_trailing_metadata_ready = &data->on_end;
  }
  if (batch->send_message) {
    data->call.Sent(payload->send_message.send_message->Length());
  }
  if (batch->send_trailing_metadata) {
    data->call.End(payload->send_trailing_metadata.send_trailing_metadata
                       ->get(grpc_core::GrpcStatusMetadata())
                       .value_or(GRPC_STATUS_UNKNOWN));
  }
  grpc_call_next_op(elem, batch);
}

grpc_error_handle InitCall(grpc_call_element* elem,
                           const grpc_call_element_args*) {
  new (elem->call_data) CallData(elem);
  return absl::OkStatus();
}

void DestroyCall(grpc_call_element* elem, const grpc_call_final_info*,
                 grpc_closure*) {
  Of(elem)->~CallData();
}

grpc_error_handle InitChannel(grpc_channel_element* elem,
                              grpc_channel_element_args*) {
  record::Recorder* const recorder = record::Recorder::OfProcess();
  new (elem->channel_data)
      ChannelData{recorder, recorder == nullptr ? 0 : recorder->NextClient()};
  return absl::OkStatus();
}

void DestroyChannel(grpc_channel_element*) {}

const grpc_channel_filter kFilter = {
    StartBatch,
    /*make_call_promise=*/nullptr,
    grpc_channel_next_op,
    sizeof(CallData),
    InitCall,
    grpc_call_stack_ignore_set_pollset_or_pollset_set,
    DestroyCall,
    sizeof(ChannelData),
    InitChannel,
    grpc_channel_stack_no_post_init,
    DestroyChannel,
    grpc_channel_next_get_info,
    "penstock-record"};

}  // namespace

void RegisterRecordingFilter(grpc_core::CoreConfiguration::Builder* builder) {
  // Puts the filter directly below the server's own filter, whose stage has the
  // largest number.
  builder->channel_init()->RegisterStage(
      GRPC_SERVER_CHANNEL, std::numeric_limits<int>::max() - 1,
      [](grpc_core::ChannelStackBuilder* stack) {
        if (record::Recorder::OfProcess() != nullptr) {
          stack->PrependFilter(&kFilter);
        }
        return true;
      });
}

}  // namespace core
}  // namespace penstock
