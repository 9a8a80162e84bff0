// The receiving side of a stream: events from the peer, and gRPC's receiving
// operations.

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/grpc/internal/errors.h"
#include "transport/grpc/internal/slice_bytes.h"
#include "transport/grpc/metadata_codec.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport.h"
#include "transport/session/refusal.h"

namespace penstock {
namespace core {

void Stream::StartReceives(grpc_transport_stream_op_batch* op) {
  grpc_transport_stream_op_batch_payload* payload = op->payload;
  if (op->recv_initial_metadata) {
    auto& receive = payload->recv_initial_metadata;
    recv_initial_ = receive.recv_initial_metadata;
    recv_initial_ready_ = receive.recv_initial_metadata_ready;
    trailers_only_ = receive.trailing_metadata_available;
    if (receive.peer_string != nullptr) {
      gpr_atm_rel_store(receive.peer_string,
                        reinterpret_cast<gpr_atm>(transport_->peer().c_str()));
    }
  }
  if (op->recv_message) {
    auto& receive = payload->recv_message;
    recv_message_ = receive.recv_message;
    recv_message_->emplace();
    recv_flags_ = receive.flags;
    recv_failed_ = receive.call_failed_before_recv_message;
    recv_message_ready_ = receive.recv_message_ready;
    if (attached_ && messages_.empty()) session()->input().WantMessage(id_);
  }
  if (op->recv_trailing_metadata) {
    auto& receive = payload->recv_trailing_metadata;
    recv_trailing_ = receive.recv_trailing_metadata;
    recv_stats_ = receive.collect_stats;
    recv_trailing_ready_ = receive.recv_trailing_metadata_ready;
  }
}

absl::Status Stream::ReceiveMetadata(absl::string_view metadata,
                                     size_t implied_bytes,
                                     grpc_metadata_batch* batch) {
  const size_t limit = transport_->limits().max_metadata_bytes;
  size_t size = 0;
  // Does not decode metadata above the limit, because the session has truncated
  // it. HTTP/2 would count even more bytes.
  const absl::Status status =
      metadata.size() > limit
          ? absl::ResourceExhaustedError("too much metadata")
          : DecodeMetadata(metadata, transport_->received_entries(), limit,
                           batch, &size);
  const bool too_many = absl::IsResourceExhausted(status);
  if (!status.ok() && !too_many) return absl::InternalError(status.message());
  // An upper bound of the bytes that HTTP/2 would count for known keys, each of
  // which occurs at most once. For another entry, HTTP/2 counts key, value and
  // 32 bytes, which is at most four times the entry's bytes here. If the sum of
  // these bounds is within the limit, TransportSize() is not needed.
  constexpr size_t kKnownKeys = 2048;
  if (too_many || (4 * size + kKnownKeys > limit &&
                   batch->TransportSize() + implied_bytes > limit)) {
    batch->Clear();
    return absl::ResourceExhaustedError(
        "received initial metadata size exceeds limit");
  }
  return absl::OkStatus();
}

void Stream::CancelFor(const absl::Status& status) {
  Cancel(ErrorWithCode(status.message(),
                       static_cast<grpc_status_code>(status.code())));
}

void Stream::OnHeaders(absl::string_view metadata) {
  stats_.incoming.header_bytes += metadata.size();
  const absl::Status status =
      headers_received_ ? absl::InternalError("initial metadata came twice")
                        : ReceiveMetadata(metadata, 0, &initial_);
  if (!status.ok()) return CancelFor(status);
  headers_received_ = true;
  CompleteReceives();
}

void Stream::OnMessage(const memory::Payload& message, bool compressed) {
  if (!headers_received_ || read_closed_) {
    return CancelFor(absl::InternalError("a message came out of order"));
  }
  if (compressed && !message.on_host()) {  // the CPU will decompress it
    const absl::StatusOr<memory::Payload> on_host = memory::ToHost(message);
    if (!on_host.ok()) return CancelFor(on_host.status());
    return OnMessage(*on_host, compressed);
  }
  stats_.incoming.data_bytes += message.size();
  transport_->socket_node()->RecordMessageReceived();
  const uint32_t flags = compressed ? GRPC_WRITE_INTERNAL_COMPRESS : 0;
  Message& queued = messages_.emplace_back();
  queued.flags = flags;
  for (const memory::Bytes& piece : message.pieces()) {
    queued.slices.push_back(ToSlice(piece));
  }
  // Represents an empty message by one empty slice, because some readers expect
  // exactly one slice.
  if (queued.slices.empty()) queued.slices.emplace_back();
  CompleteReceives();
}

// Queues the refusal of the message. Earlier messages are delivered first, and
// the other direction of the stream continues.
void Stream::OnMessageTooLarge(uint64_t bytes) {
  messages_.emplace_back().refused_bytes = bytes;
  CompleteReceives();
}

void Stream::OnHalfClose() {
  if (transport_->is_client()) {
    return CancelFor(absl::InternalError("a server half-closed a stream"));
  }
  read_closed_ = true;
  CompleteReceives();
}

void Stream::OnTrailers(absl::string_view metadata) {
  if (!transport_->is_client()) {
    return CancelFor(absl::InternalError("a client sent trailers"));
  }
  stats_.incoming.header_bytes += metadata.size();
  // The bytes of ":status" and "content-type", which HTTP/2 sends in an answer
  // of trailers only.
  constexpr size_t kTrailersOnly = (7 + 3 + 32) + (12 + 16 + 32);
  const absl::Status status = ReceiveMetadata(
      metadata, headers_received_ ? 0 : kTrailersOnly, &trailing_);
  if (!status.ok()) return CancelFor(status);
  read_closed_ = true;
  session()->output().DropUnsent(id_);  // the server has stopped reading
  // Sets a status if the server sent none, because gRPC's filters need a
  // status.
  if (!trailing_.get(grpc_core::GrpcStatusMetadata()).has_value()) {
    SetTrailingStatus(ErrorWithCode("the server sent trailers without a status",
                                    GRPC_STATUS_UNKNOWN));
  }
  trailing_.Set(grpc_core::GrpcStatusFromWire(), true);
  Close(absl::OkStatus());
}

void Stream::OnReset(const absl::Status& status, bool from_peer) {
  (void)from_peer;
  attached_ = false;  // the session has detached the stream
  const grpc_error_handle error = ErrorWithCode(
      status.message(), static_cast<grpc_status_code>(status.code()));
  if (session::IsRefusal(status) && transport_->is_client()) {
    transport_->goaway()->OnRefused();
    CloseUnseen(error);
  } else {
    Close(error);
  }
  Leave();
}

// Completes receiving operations. After an error, drops queued messages: on a
// server always, and on a client once gRPC waits for the status. gRPC's HTTP/2
// does the same.
void Stream::CompleteReceives() {
  const bool unwanted = transport_->is_client()
                            ? failed_ && recv_trailing_ready_ != nullptr
                            : closed_;
  if (unwanted) messages_.clear();
  // Completes operations in gRPC's order if gRPC waits for several operations.
  // Usually gRPC waits for only one.
  if (recv_initial_ready_ != nullptr) CompleteInitialMetadata();
  if (recv_message_ready_ != nullptr) CompleteMessage();
  if (recv_trailing_ready_ != nullptr) CompleteTrailingMetadata();
}

void Stream::CompleteInitialMetadata() {
  if (!headers_received_ && !read_closed_ && !closed_) return;
  grpc_error_handle error;
  if (!headers_received_) {
    if (trailers_only_ != nullptr) *trailers_only_ = true;
    if (!transport_->is_client()) {
      error = close_error_.ok() ? absl::CancelledError() : close_error_;
    }
  }
  if (failed_) messages_.clear();
  *recv_initial_ = std::move(initial_);
  recv_initial_->Set(grpc_core::PeerString(), transport_->peer());
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          std::exchange(recv_initial_ready_, nullptr), error);
}

void Stream::CompleteMessage() {
  if (!messages_.empty()) {
    Message message = messages_.pop_front();
    if (attached_) session()->input().Consumed(id_);
    if (message.refused_bytes > 0) return RefuseMessage(message.refused_bytes);
    return DeliverMessage(std::move(message));
  }
  if (!read_closed_ && !closed_) return;
  recv_message_->reset();
  if (recv_failed_ != nullptr) *recv_failed_ = !close_error_.ok();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          std::exchange(recv_message_ready_, nullptr),
                          absl::OkStatus());
}

void Stream::DeliverMessage(Message message) {
  for (grpc_core::Slice& slice : message.slices) {
    (*recv_message_)->Append(std::move(slice));
  }
  if (recv_flags_ != nullptr) *recv_flags_ = message.flags;
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          std::exchange(recv_message_ready_, nullptr),
                          absl::OkStatus());
}

// Completes the operation with the error of gRPC's message size filter. On a
// server, gRPC then ends the call before its handler has read anything. On a
// client, this error becomes the call's status, even after the server's status
// has arrived.
void Stream::RefuseMessage(uint64_t bytes) {
  const grpc_error_handle error = ErrorWithCode(
      absl::StrCat("Received message larger than max (", bytes, " vs. ",
                   transport_->limits().max_receive_bytes, ")"),
      GRPC_STATUS_RESOURCE_EXHAUSTED);
  recv_message_->reset();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          std::exchange(recv_message_ready_, nullptr), error);
  if (transport_->is_client()) Cancel(error);
}

void Stream::CompleteTrailingMetadata() {
  if (!closed_ || !messages_.empty()) return;
  status_taken_ = true;
  *recv_trailing_ = std::move(trailing_);
  if (recv_stats_ != nullptr) grpc_transport_move_stats(&stats_, recv_stats_);
  grpc_core::ExecCtx::Run(
      DEBUG_LOCATION, std::exchange(recv_trailing_ready_, nullptr),
      transport_->is_client() ? absl::OkStatus() : close_error_);
}

}  // namespace core
}  // namespace penstock
