#include "transport/grpc/filters/decompress_filter.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "grpc/impl/codegen/compression_types.h"
#include "src/core/ext/filters/http/message_compress/message_decompress_filter.h"
#include "src/core/ext/filters/message_size/message_size_filter.h"
#include "src/core/lib/channel/channel_args.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/channel/channel_stack_builder.h"
#include "src/core/lib/gprpp/status_helper.h"
#include "src/core/lib/iomgr/call_combiner.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/error.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/surface/channel_init.h"
#include "src/core/lib/surface/channel_stack_type.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "src/core/lib/transport/transport.h"
#include "transport/grpc/filters/inflate.h"

namespace penstock {
namespace core {
namespace {

// The filter's data of a connection.
struct ChannelData {
  absl::optional<uint32_t> max_receive_bytes;
  // Limits the decompressed bytes of a message if max_receive_bytes is not set.
  // 0 means no limit.
  uint64_t max_decompressed_bytes;
  size_t config_index;
};

// The filter's data of a call. gRPC's call combiner guards the data: all
// batches and closures of a call run one after another.
//
// A message may arrive before the metadata that names its encoding. The end of
// a call may arrive before the call's message. This object delays such an early
// closure, and releases the call combiner meanwhile.
class CallData {
 public:
  CallData(const ChannelData& channel, const grpc_call_element_args& args)
      : combiner_(args.call_combiner),
        max_receive_bytes_(channel.max_receive_bytes),
        max_decompressed_bytes_(channel.max_decompressed_bytes) {
    const auto* const config =
        grpc_core::MessageSizeParsedConfig::GetFromCallContext(
            args.context, channel.config_index);
    if (config != nullptr && config->max_recv_size().has_value()) {
      max_receive_bytes_ = std::min(
          max_receive_bytes_.value_or(std::numeric_limits<uint32_t>::max()),
          *config->max_recv_size());
    }
    GRPC_CLOSURE_INIT(&on_metadata_, &CallData::OnMetadata, this, nullptr);
    GRPC_CLOSURE_INIT(&on_message_, &CallData::OnMessage, this, nullptr);
    GRPC_CLOSURE_INIT(&on_end_, &CallData::OnEnd, this, nullptr);
  }

  void StartBatch(grpc_call_element* elem,
                  grpc_transport_stream_op_batch* batch) {
    grpc_transport_stream_op_batch_payload* const payload = batch->payload;
    if (batch->recv_initial_metadata) {
      auto& receive = payload->recv_initial_metadata;
      metadata_ = receive.recv_initial_metadata;
      then_metadata_ = receive.recv_initial_metadata_ready;
      receive.recv_initial_metadata_ready = &on_metadata_;
    }
    if (batch->recv_message) {
      auto& receive = payload->recv_message;
      message_ = receive.recv_message;
      flags_ = receive.flags;
      then_message_ = receive.recv_message_ready;
      receive.recv_message_ready = &on_message_;
    }
    if (batch->recv_trailing_metadata) {
      auto& receive = payload->recv_trailing_metadata;
      then_end_ = receive.recv_trailing_metadata_ready;
      receive.recv_trailing_metadata_ready = &on_end_;
    }
    grpc_call_next_op(elem, batch);
  }

 private:
  static void OnMetadata(void* arg, grpc_error_handle error);
  static void OnMessage(void* arg, grpc_error_handle error);
  static void OnEnd(void* arg, grpc_error_handle error);

  void ResumeMessage();
  void ResumeEnd();
  // Decompresses the message. Returns an error if the message cannot be
  // delivered.
  grpc_error_handle Decompress();
  uint64_t Limit(uint64_t compressed_bytes) const;
  grpc_error_handle TooLong(uint64_t compressed_bytes, uint64_t most) const;

  grpc_core::CallCombiner* const combiner_;
  absl::optional<uint32_t> max_receive_bytes_;
  const uint64_t max_decompressed_bytes_;
  grpc_compression_algorithm algorithm_ = GRPC_COMPRESS_NONE;
  grpc_error_handle error_;  // a message's error, reported at the call's end

  grpc_metadata_batch* metadata_ = nullptr;
  absl::optional<grpc_core::SliceBuffer>* message_ = nullptr;
  uint32_t* flags_ = nullptr;
  // The closures that replace the application's closures. Each on_*_ does the
  // filter's work and then runs the replaced closure, then_*_, which is null if
  // the application gave none.
  grpc_closure on_metadata_;
  grpc_closure on_message_;
  grpc_closure on_end_;
  grpc_closure* then_metadata_ = nullptr;
  grpc_closure* then_message_ = nullptr;
  grpc_closure* then_end_ = nullptr;
  bool holds_message_ = false;
  bool holds_end_ = false;
  grpc_error_handle error_of_end_;
};

void CallData::OnMetadata(void* arg, grpc_error_handle error) {
  auto* const call = static_cast<CallData*>(arg);
  if (error.ok()) {
    call->algorithm_ = call->metadata_->get(grpc_core::GrpcEncodingMetadata())
                           .value_or(GRPC_COMPRESS_NONE);
  }
  call->ResumeMessage();
  call->ResumeEnd();
  grpc_closure* const then = std::exchange(call->then_metadata_, nullptr);
  grpc_core::Closure::Run(DEBUG_LOCATION, then, std::move(error));
}

void CallData::ResumeMessage() {
  if (!std::exchange(holds_message_, false)) return;
  GRPC_CALL_COMBINER_START(combiner_, &on_message_, absl::OkStatus(),
                           "a message whose encoding is known now");
}

void CallData::OnMessage(void* arg, grpc_error_handle error) {
  auto* const call = static_cast<CallData*>(arg);
  if (error.ok() && call->then_metadata_ != nullptr) {
    call->holds_message_ = true;
    GRPC_CALL_COMBINER_STOP(call->combiner_,
                            "a message whose encoding is not known yet");
    return;
  }
  if (error.ok()) {
    error = call->Decompress();
    if (!error.ok()) call->error_ = error;
  }
  call->ResumeEnd();
  grpc_closure* const then = std::exchange(call->then_message_, nullptr);
  grpc_core::Closure::Run(DEBUG_LOCATION, then, std::move(error));
}

uint64_t CallData::Limit(uint64_t compressed_bytes) const {
  if (max_receive_bytes_.has_value()) return *max_receive_bytes_;
  if (max_decompressed_bytes_ == 0) return std::numeric_limits<int64_t>::max();
  return std::max(max_decompressed_bytes_,
                  kDecompressedPerByte * compressed_bytes);
}

// Returns the error. Uses the same text as gRPC, because programs recognise the
// error by its text.
grpc_error_handle CallData::TooLong(uint64_t compressed_bytes,
                                    uint64_t most) const {
  const std::string text =
      max_receive_bytes_.has_value()
          ? absl::StrFormat("Received message larger than max (%u vs. %d)",
                            std::max(compressed_bytes, most + 1), most)
          : absl::StrCat("Received message of ", compressed_bytes,
                         " bytes which becomes longer than max (", most,
                         "); raise the channel argument ", kMaxDecompressedArg);
  return grpc_error_set_int(GRPC_ERROR_CREATE(text),
                            grpc_core::StatusIntProperty::kRpcStatus,
                            GRPC_STATUS_RESOURCE_EXHAUSTED);
}

grpc_error_handle CallData::Decompress() {
  if (algorithm_ == GRPC_COMPRESS_NONE || !message_->has_value() ||
      (*message_)->Length() == 0 ||
      (*flags_ & GRPC_WRITE_INTERNAL_COMPRESS) == 0) {
    return absl::OkStatus();
  }
  const uint64_t compressed_bytes = (*message_)->Length();
  const uint64_t most = Limit(compressed_bytes);
  if (compressed_bytes > most) return TooLong(compressed_bytes, most);
  grpc_core::SliceBuffer decompressed;
  switch (InflateMessage(algorithm_, **message_, most, &decompressed)) {
    case Inflated::kTooLong:
      return TooLong(compressed_bytes, most);
    case Inflated::kDamaged:
      return GRPC_ERROR_CREATE(
          absl::StrCat("Unexpected error decompressing data for algorithm with "
                       "enum value ",
                       algorithm_));
    case Inflated::kWhole:
      break;
  }
  *flags_ = (*flags_ & ~uint32_t{GRPC_WRITE_INTERNAL_COMPRESS}) |
            GRPC_WRITE_INTERNAL_TEST_ONLY_WAS_COMPRESSED;
  (*message_)->Swap(&decompressed);
  return absl::OkStatus();
}

void CallData::ResumeEnd() {
  if (!std::exchange(holds_end_, false)) return;
  GRPC_CALL_COMBINER_START(combiner_, &on_end_,
                           std::exchange(error_of_end_, absl::OkStatus()),
                           "the end of a call whose message has come");
}

void CallData::OnEnd(void* arg, grpc_error_handle error) {
  auto* const call = static_cast<CallData*>(arg);
  if (call->then_metadata_ != nullptr || call->then_message_ != nullptr) {
    call->holds_end_ = true;
    call->error_of_end_ = std::move(error);
    GRPC_CALL_COMBINER_STOP(call->combiner_,
                            "the end of a call whose message has not come");
    return;
  }
  error = grpc_error_add_child(std::move(error),
                               std::exchange(call->error_, absl::OkStatus()));
  grpc_closure* const then = std::exchange(call->then_end_, nullptr);
  grpc_core::Closure::Run(DEBUG_LOCATION, then, std::move(error));
}

CallData* Of(grpc_call_element* elem) {
  return static_cast<CallData*>(elem->call_data);
}

void StartBatch(grpc_call_element* elem,
                grpc_transport_stream_op_batch* batch) {
  Of(elem)->StartBatch(elem, batch);
}

grpc_error_handle InitCall(grpc_call_element* elem,
                           const grpc_call_element_args* args) {
  new (elem->call_data)
      CallData(*static_cast<const ChannelData*>(elem->channel_data), *args);
  return absl::OkStatus();
}

void DestroyCall(grpc_call_element* elem, const grpc_call_final_info*,
                 grpc_closure*) {
  Of(elem)->~CallData();
}

grpc_error_handle InitChannel(grpc_channel_element* elem,
                              grpc_channel_element_args* args) {
  const auto channel_args = grpc_core::ChannelArgs::FromC(args->channel_args);
  const int most = channel_args.GetInt(kMaxDecompressedArg).value_or(0);
  new (elem->channel_data)
      ChannelData{grpc_core::GetMaxRecvSizeFromChannelArgs(channel_args),
                  static_cast<uint64_t>(std::max(most, 0)),
                  grpc_core::MessageSizeParser::ParserIndex()};
  return absl::OkStatus();
}

void DestroyChannel(grpc_channel_element* elem) {
  static_cast<ChannelData*>(elem->channel_data)->~ChannelData();
}

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
    "penstock-decompress"};

bool PutInPlace(grpc_core::ChannelStackBuilder* stack) {
  std::vector<const grpc_channel_filter*>* const filters =
      stack->mutable_stack();
  std::replace(filters->begin(), filters->end(),
               &grpc_core::MessageDecompressFilter, &kFilter);
  return true;
}

}  // namespace

void RegisterDecompressFilter(grpc_core::CoreConfiguration::Builder* builder) {
  // A priority that is later than the stages that add gRPC's decompressing
  // filter.
  constexpr int kLate = std::numeric_limits<int>::max() - 1;
  for (const grpc_channel_stack_type type :
       {GRPC_CLIENT_SUBCHANNEL, GRPC_CLIENT_DIRECT_CHANNEL,
        GRPC_SERVER_CHANNEL}) {
    builder->channel_init()->RegisterStage(type, kLate, PutInPlace);
  }
}

}  // namespace core
}  // namespace penstock
