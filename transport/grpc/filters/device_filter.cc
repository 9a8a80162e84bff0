#include "transport/grpc/filters/device_filter.h"

#include <limits>
#include <new>

#include "src/core/lib/channel/channel_args.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/channel/channel_stack_builder.h"
#include "src/core/lib/compression/compression_internal.h"
#include "src/core/lib/surface/channel_init.h"
#include "src/core/lib/surface/channel_stack_type.h"
#include "src/core/lib/transport/transport.h"
#include "transport/grpc/filters/device_call.h"
#include "transport/grpc/transport.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace core {
namespace {

// The filter's data of a connection.
struct ChannelData {
  // The connection's Penstock transport. Null if the connection has another
  // transport, or if gRPC compresses messages by default.
  Transport* transport;
};

DeviceCall* Of(grpc_call_element* elem) {
  return static_cast<DeviceCall*>(elem->call_data);
}

void StartBatch(grpc_call_element* elem,
                grpc_transport_stream_op_batch* batch) {
  Of(elem)->StartBatch(batch);
}

template <bool kIsClient>
grpc_error_handle InitCall(grpc_call_element* elem,
                           const grpc_call_element_args* args) {
  auto* const channel = static_cast<const ChannelData*>(elem->channel_data);
  new (elem->call_data) DeviceCall(kIsClient, channel->transport, elem, *args);
  return absl::OkStatus();
}

void DestroyCall(grpc_call_element* elem, const grpc_call_final_info*,
                 grpc_closure*) {
  Of(elem)->~DeviceCall();
}

// Returns true if gRPC's compressing filter compresses by default.
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
      StartBatch,
      /*make_call_promise=*/nullptr,
      grpc_channel_next_op,
      sizeof(DeviceCall),
      InitCall<kIsClient>,
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
  // Registers the stage with a number that puts the filter above all filters
  // but the server's own. Stages run in the order of their numbers, and a later
  // stage puts its filters further up.
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
