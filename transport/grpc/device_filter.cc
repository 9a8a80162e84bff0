#include "transport/grpc/device_filter.h"

#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "absl/types/optional.h"
#include "src/core/lib/channel/channel_args.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/channel/channel_stack_builder.h"
#include "src/core/lib/compression/compression_internal.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/surface/channel_init.h"
#include "src/core/lib/surface/channel_stack_type.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "src/core/lib/transport/transport.h"
#include "src/core/lib/transport/transport_impl.h"
#include "transport/grpc/accepted_paths.h"
#include "transport/grpc/call_destinations.h"
#include "transport/grpc/device_slices.h"
#include "transport/grpc/errors.h"
#include "transport/grpc/transport.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace core {
namespace {

// Of a connection.
struct ChannelData {
  // Null if it is not Penstock's, or if gRPC compresses what it sends.
  Transport* transport;
};

// Of a call. gRPC's call combiner guards it: all batches and closures of a call
// run one after another.
struct CallData {
  CallData(grpc_call_element* elem, grpc_core::CallCombiner* combiner);

  grpc_core::CallCombiner* const call_combiner;
  bool compresses = false;    // what it sends
  bool accepts = false;       // slices on devices
  grpc_error_handle failure;  // of a message that was received
  grpc_metadata_batch* initial_metadata = nullptr;
  absl::optional<grpc_core::SliceBuffer>* message = nullptr;
  // Ours, which gRPC calls in place of those that they call at their end.
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

grpc_error_handle ToError(const absl::Status& status) {
  return ErrorWithCode(status.message(),
                       static_cast<grpc_status_code>(status.code()));
}

bool Compresses(const grpc_metadata_batch& initial_metadata) {
  return initial_metadata.get(grpc_core::GrpcInternalEncodingRequest())
             .value_or(GRPC_COMPRESS_NONE) != GRPC_COMPRESS_NONE;
}

// Makes `message` one that what is below can send.
absl::Status Prepare(grpc_call_element* elem, grpc_core::SliceBuffer* message) {
  absl::Status ready = AwaitDeviceSlices(*message);
  if (!ready.ok()) return ready;
  Transport* const transport =
      static_cast<const ChannelData*>(elem->channel_data)->transport;
  const bool leaves = transport != nullptr && !Of(elem)->compresses &&
                      transport->TakesDeviceMemory();
  return CopyDeviceSlices(
      leaves ? memory::kMinDeviceBytes : std::numeric_limits<size_t>::max(),
      message);
}

// On a server: says what the call is.
void OnInitialMetadata(void* arg, grpc_error_handle error) {
  CallData* const data = Of(static_cast<grpc_call_element*>(arg));
  if (error.ok()) {
    const grpc_core::Slice* const path =
        data->initial_metadata->get_pointer(grpc_core::HttpPathMetadata());
    data->accepts =
        path != nullptr && AcceptsDeviceSlices(path->as_string_view());
  }
  grpc_core::Closure::Run(DEBUG_LOCATION, data->then_initial_metadata, error);
}

void OnMessage(void* arg, grpc_error_handle error) {
  CallData* const data = Of(static_cast<grpc_call_element*>(arg));
  if (error.ok() && !data->accepts && data->message->has_value() &&
      HasDeviceSlices(**data->message)) {
    const absl::Status copied =
        CopyDeviceSlices(std::numeric_limits<size_t>::max(), &**data->message);
    if (!copied.ok()) {
      data->message->reset();
      error = data->failure = ToError(copied);
    }
  }
  grpc_core::Closure::Run(DEBUG_LOCATION,
                          std::exchange(data->then_message, nullptr), error);
}

// A message that was lost is the call's end, whatever its status says.
void OnEnd(void* arg, grpc_error_handle error) {
  CallData* const data = Of(static_cast<grpc_call_element*>(arg));
  if (error.ok()) error = data->failure;
  grpc_core::Closure::Run(DEBUG_LOCATION, data->then_end, error);
}

CallData::CallData(grpc_call_element* elem, grpc_core::CallCombiner* combiner)
    : call_combiner(combiner) {
  GRPC_CLOSURE_INIT(&on_initial_metadata, OnInitialMetadata, elem, nullptr);
  GRPC_CLOSURE_INIT(&on_message, OnMessage, elem, nullptr);
  GRPC_CLOSURE_INIT(&on_end, OnEnd, elem, nullptr);
}

template <bool kIsClient>
void StartReceives(CallData* data, grpc_transport_stream_op_batch* batch) {
  grpc_transport_stream_op_batch_payload* const payload = batch->payload;
  // A client's call has said what it accepts.
  if (!kIsClient && batch->recv_initial_metadata) {
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
}

template <bool kIsClient>
void StartBatch(grpc_call_element* elem,
                grpc_transport_stream_op_batch* batch) {
  CallData* const data = Of(elem);
  grpc_transport_stream_op_batch_payload* const payload = batch->payload;
  if (batch->send_initial_metadata) {
    data->compresses =
        Compresses(*payload->send_initial_metadata.send_initial_metadata);
    if (kIsClient) {
      const auto destinations = DestinationsOf(payload->context);
      data->accepts = destinations != nullptr && destinations->anywhere();
    }
  }
  if (batch->send_message &&
      HasDeviceSlices(*payload->send_message.send_message)) {
    const absl::Status prepared =
        Prepare(elem, payload->send_message.send_message);
    if (!prepared.ok()) {
      return grpc_transport_stream_op_batch_finish_with_failure(
          batch, ToError(prepared), data->call_combiner);
    }
  }
  StartReceives<kIsClient>(data, batch);
  grpc_call_next_op(elem, batch);
}

grpc_error_handle InitCall(grpc_call_element* elem,
                           const grpc_call_element_args* args) {
  new (elem->call_data) CallData(elem, args->call_combiner);
  return absl::OkStatus();
}

void DestroyCall(grpc_call_element* elem, const grpc_call_final_info*,
                 grpc_closure*) {
  Of(elem)->~CallData();
}

// What gRPC's compressing filter does where a call says nothing.
bool CompressesByDefault(const grpc_channel_args* args) {
  return grpc_core::DefaultCompressionAlgorithmFromChannelArgs(args).value_or(
             GRPC_COMPRESS_NONE) != GRPC_COMPRESS_NONE;
}

grpc_error_handle InitChannel(grpc_channel_element* elem,
                              grpc_channel_element_args* args) {
  auto* const transport = grpc_channel_args_find_pointer<grpc_transport>(
      args->channel_args, GRPC_ARG_TRANSPORT);
  const bool is_ours = transport != nullptr && Transport::IsOurs(*transport) &&
                       !CompressesByDefault(args->channel_args);
  new (elem->channel_data)
      ChannelData{is_ours ? Transport::From(transport) : nullptr};
  return absl::OkStatus();
}

void DestroyChannel(grpc_channel_element*) {}

template <bool kIsClient>
const grpc_channel_filter* Filter() {
  static const grpc_channel_filter filter = {
      StartBatch<kIsClient>,
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
      "penstock-device"};
  return &filter;
}

void Register(grpc_core::CoreConfiguration::Builder* builder,
              grpc_channel_stack_type type, const grpc_channel_filter* filter) {
  // Stages with larger numbers come later, and put their filters further up:
  // below the server's own only, which has the largest.
  builder->channel_init()->RegisterStage(
      type, std::numeric_limits<int>::max() - 1,
      [filter](grpc_core::ChannelStackBuilder* stack) {
        if (!memory::RelyOnNoDevices()) stack->PrependFilter(filter);
        return true;
      });
}

}  // namespace

void RegisterDeviceFilter(grpc_core::CoreConfiguration::Builder* builder) {
  Register(builder, GRPC_CLIENT_SUBCHANNEL, Filter<true>());
  Register(builder, GRPC_CLIENT_DIRECT_CHANNEL, Filter<true>());
  Register(builder, GRPC_SERVER_CHANNEL, Filter<false>());
}

}  // namespace core
}  // namespace penstock
