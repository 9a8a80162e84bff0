#include "transport/grpc/stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/gprpp/status_helper.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/error_utils.h"
#include "transport/grpc/metadata_codec.h"
#include "transport/grpc/slice_bytes.h"
#include "transport/grpc/transport.h"

namespace penstock {
namespace core {
namespace {

using grpc_core::StatusIntProperty;

grpc_error_handle ErrorWithCode(absl::string_view text, grpc_status_code code) {
  return grpc_error_set_int(GRPC_ERROR_CREATE(std::string(text)),
                            StatusIntProperty::kRpcStatus, code);
}

absl::Status ToStatus(const grpc_error_handle& error) {
  grpc_status_code code = GRPC_STATUS_UNKNOWN;
  std::string message;
  grpc_error_get_status(error, grpc_core::Timestamp::InfFuture(), &code,
                        &message, nullptr, nullptr);
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

// The visitor that grpc_metadata_batch::Encode() wants: finds keys that are the
// application's, not gRPC's own.
class CustomKeyFinder {
 public:
  void Encode(const grpc_core::Slice&, const grpc_core::Slice&) {
    found_ = true;
  }
  template <typename Trait, typename Value>
  void Encode(Trait, const Value&) {}
  bool found() const { return found_; }

 private:
  bool found_ = false;
};

bool HasCustomKeys(const grpc_metadata_batch& metadata) {
  CustomKeyFinder finder;
  metadata.Encode(&finder);
  return finder.found();
}

// An answer of nothing but a status, which clients tell from one with headers.
// Stock HTTP/2 sends it under the same condition.
bool IsTrailersOnly(const grpc_transport_stream_op_batch& op) {
  return op.send_initial_metadata && op.send_trailing_metadata &&
         !op.send_message &&
         !HasCustomKeys(
             *op.payload->send_initial_metadata.send_initial_metadata);
}

}  // namespace

Stream::Stream(Transport* transport, grpc_stream_refcount* refcount,
               grpc_core::Arena* arena)
    : transport_(transport),
      refcount_(refcount),
      initial_(arena),
      trailing_(arena) {}

Stream::~Stream() = default;

session::Session* Stream::session() const { return transport_->session(); }

void Stream::Accept(uint32_t id) {
  id_ = id;
  attached_ = true;
  grpc_stream_ref(refcount_, "penstock");
  transport_->AddStream(this);
  transport_->socket_node()->RecordStreamStartedFromRemote();
  session()->AttachStream(id, this);
}

void Stream::Open() {
  id_ = transport_->NextStreamId();
  attached_ = true;
  grpc_stream_ref(refcount_, "penstock");
  transport_->AddStream(this);
  transport_->socket_node()->RecordStreamStartedFromLocal();
  session()->AttachStream(id_, this);
}

void Stream::PerformOp(grpc_transport_stream_op_batch* op) {
  grpc_transport_stream_op_batch_payload* payload = op->payload;
  grpc_error_handle error;
  bool complete = true;
  if (op->cancel_stream) Cancel(payload->cancel_stream.cancel_error);
  if (op->send_initial_metadata &&
      (transport_->is_client() || !IsTrailersOnly(*op))) {
    error = SendInitialMetadata(payload);
  }
  if (op->send_message) complete = SendMessage(payload);
  if (op->send_trailing_metadata) {
    grpc_error_handle sent = SendTrailingMetadata(payload);
    if (error.ok()) error = sent;
  }
  if (op->on_complete != nullptr) {
    if (complete) {
      grpc_core::ExecCtx::Run(DEBUG_LOCATION, op->on_complete, error);
    } else {
      send_done_ = op->on_complete;
    }
  }
  if (trailers_sent_ && send_done_ == nullptr) Close(absl::OkStatus());
  StartReceives(op);
  CompleteReceives();
}

void Stream::Cancel(const grpc_error_handle& error) {
  if (closed_) {
    // The trailers wait behind messages that nobody will ask for any more.
    messages_.clear();
    CompleteReceives();
    return;
  }
  if (attached_) Abort(ToStatus(error));
  Close(error);
}

// Tells the peer. A server's status follows what was already sent; a client's
// reset overtakes it.
void Stream::Abort(const absl::Status& status) {
  if (transport_->is_client()) {
    session()->SendReset(id_, status);
    return;
  }
  session()->DropUnsent(id_);
  session()->SendTrailers(id_, EncodeStatus(status));
}

grpc_error_handle Stream::SendInitialMetadata(
    grpc_transport_stream_op_batch_payload* payload) {
  auto& op = payload->send_initial_metadata;
  if (op.peer_string != nullptr) {
    gpr_atm_rel_store(op.peer_string,
                      reinterpret_cast<gpr_atm>(transport_->peer().c_str()));
  }
  if (write_closed_) {
    return GRPC_ERROR_CREATE(
        "Attempt to send initial metadata after stream was closed");
  }
  if (transport_->is_client()) {
    if (!transport_->AcceptsStreams()) {
      trailing_.Set(grpc_core::GrpcStreamNetworkState(),
                    grpc_core::GrpcStreamNetworkState::kNotSentOnWire);
      Close(ErrorWithCode("the connection is going away",
                          GRPC_STATUS_UNAVAILABLE));
      return absl::OkStatus();
    }
    Open();
  }
  const std::string metadata = EncodeMetadata(*op.send_initial_metadata);
  stats_.outgoing.header_bytes += metadata.size();
  session()->SendHeaders(id_, metadata);
  return absl::OkStatus();
}

bool Stream::SendMessage(grpc_transport_stream_op_batch_payload* payload) {
  auto& op = payload->send_message;
  bool accepted = true;
  if (write_closed_) {
    op.stream_write_closed = true;
  } else {
    stats_.outgoing.data_bytes += op.send_message->Length();
    transport_->socket_node()->RecordMessagesSent(1);
    accepted =
        session()->SendMessage(id_, ToPayload(*op.send_message),
                               (op.flags & GRPC_WRITE_INTERNAL_COMPRESS) != 0);
  }
  op.send_message->Clear();
  return accepted;
}

grpc_error_handle Stream::SendTrailingMetadata(
    grpc_transport_stream_op_batch_payload* payload) {
  auto& op = payload->send_trailing_metadata;
  if (write_closed_) {
    if (op.send_trailing_metadata->empty()) return absl::OkStatus();
    return GRPC_ERROR_CREATE(
        "Attempt to send trailing metadata after stream was closed");
  }
  write_closed_ = true;
  if (transport_->is_client()) {
    session()->SendHalfClose(id_);
    return absl::OkStatus();
  }
  const std::string metadata = EncodeMetadata(*op.send_trailing_metadata);
  stats_.outgoing.header_bytes += metadata.size();
  session()->SendTrailers(id_, metadata);
  if (op.sent != nullptr) *op.sent = true;
  trailers_sent_ = true;
  return absl::OkStatus();
}

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
    if (attached_ && messages_.empty()) session()->WantMessage(id_);
  }
  if (op->recv_trailing_metadata) {
    auto& receive = payload->recv_trailing_metadata;
    recv_trailing_ = receive.recv_trailing_metadata;
    recv_stats_ = receive.collect_stats;
    recv_trailing_ready_ = receive.recv_trailing_metadata_ready;
  }
}

absl::Status Stream::ReceiveMetadata(const std::string& metadata,
                                     grpc_metadata_batch* batch) {
  absl::Status status = DecodeMetadata(metadata, batch);
  if (!status.ok()) return absl::InternalError(status.message());
  const size_t limit = transport_->limits().max_metadata_bytes;
  // HTTP/2 counts 32 bytes for each entry beside key and value, which is at
  // most four times what an entry takes here.
  if (metadata.size() > limit / 4 && batch->TransportSize() > limit) {
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

void Stream::OnHeaders(std::string metadata) {
  stats_.incoming.header_bytes += metadata.size();
  const absl::Status status =
      headers_received_ ? absl::InternalError("initial metadata came twice")
                        : ReceiveMetadata(metadata, &initial_);
  if (!status.ok()) return CancelFor(status);
  headers_received_ = true;
  CompleteReceives();
}

void Stream::OnMessage(memory::Bytes message, bool compressed) {
  stats_.incoming.data_bytes += message.size;
  transport_->socket_node()->RecordMessageReceived();
  messages_.emplace_back();
  Message& received = messages_.back();
  received.buffer.Append(ToSlice(std::move(message)));
  received.flags = compressed ? GRPC_WRITE_INTERNAL_COMPRESS : 0;
  CompleteReceives();
}

void Stream::OnMessageTooLarge(uint64_t bytes) {
  Cancel(ErrorWithCode(
      absl::StrCat("Received message larger than max (", bytes, " vs. ",
                   transport_->limits().max_receive_bytes, ")"),
      GRPC_STATUS_RESOURCE_EXHAUSTED));
}

void Stream::OnHalfClose() {
  read_closed_ = true;
  CompleteReceives();
}

void Stream::OnTrailers(std::string metadata) {
  stats_.incoming.header_bytes += metadata.size();
  const absl::Status status = ReceiveMetadata(metadata, &trailing_);
  if (!status.ok()) return CancelFor(status);
  read_closed_ = true;
  session()->DropUnsent(id_);  // the server reads no more
  trailing_.Set(grpc_core::GrpcStatusFromWire(), true);
  Close(absl::OkStatus());
}

void Stream::OnReset(const absl::Status& status, bool from_peer) {
  (void)from_peer;
  attached_ = false;  // the session has let go by itself
  const grpc_error_handle error = ErrorWithCode(
      status.message(), static_cast<grpc_status_code>(status.code()));
  Close(error);
  Leave();
}

void Stream::OnSendAccepted() {
  if (send_done_ != nullptr) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, std::exchange(send_done_, nullptr),
                            absl::OkStatus());
  }
  if (trailers_sent_) Close(absl::OkStatus());
}

void Stream::CloseUnseen(const grpc_error_handle& error) {
  trailing_.Set(grpc_core::GrpcStreamNetworkState(),
                grpc_core::GrpcStreamNetworkState::kNotSeenByServer);
  Close(error);
}

void Stream::Close(const grpc_error_handle& error) {
  if (closed_) return;
  closed_ = write_closed_ = true;
  close_error_ = error;
  if (!error.ok()) {
    messages_.clear();
    if (transport_->is_client()) SetTrailingStatus(error);
  }
  if (send_done_ != nullptr) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, std::exchange(send_done_, nullptr),
                            error);
  }
  CompleteReceives();
  if (!attached_) return;
  session()->DetachStream(id_);
  Leave();
}

// The session knows the stream no more.
void Stream::Leave() {
  attached_ = false;
  if (close_error_.ok()) {
    transport_->socket_node()->RecordStreamSucceeded();
  } else {
    transport_->socket_node()->RecordStreamFailed();
  }
  transport_->RemoveStream(this);
  grpc_stream_unref(refcount_, "penstock");
}

void Stream::SetTrailingStatus(const grpc_error_handle& error) {
  const absl::Status status = ToStatus(error);
  trailing_.Set(grpc_core::GrpcStatusMetadata(),
                static_cast<grpc_status_code>(status.code()));
  if (status.message().empty()) return;
  trailing_.Set(
      grpc_core::GrpcMessageMetadata(),
      grpc_core::Slice::FromCopiedString(std::string(status.message())));
}

void Stream::CompleteReceives() {
  CompleteInitialMetadata();
  CompleteMessage();
  CompleteTrailingMetadata();
}

void Stream::CompleteInitialMetadata() {
  if (recv_initial_ready_ == nullptr) return;
  if (!headers_received_ && !read_closed_ && !closed_) return;
  grpc_error_handle error;
  if (!headers_received_) {
    if (trailers_only_ != nullptr) *trailers_only_ = true;
    if (!transport_->is_client()) {
      error = close_error_.ok() ? absl::CancelledError() : close_error_;
    }
  }
  *recv_initial_ = std::move(initial_);
  recv_initial_->Set(grpc_core::PeerString(), transport_->peer());
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          std::exchange(recv_initial_ready_, nullptr), error);
}

void Stream::CompleteMessage() {
  if (recv_message_ready_ == nullptr) return;
  if (!messages_.empty()) {
    *recv_message_ = std::move(messages_.front().buffer);
    if (recv_flags_ != nullptr) *recv_flags_ = messages_.front().flags;
    messages_.pop_front();
    if (attached_) session()->Consumed(id_);
  } else if (read_closed_ || closed_) {
    recv_message_->reset();
    if (recv_failed_ != nullptr) *recv_failed_ = !close_error_.ok();
  } else {
    return;
  }
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          std::exchange(recv_message_ready_, nullptr),
                          absl::OkStatus());
}

void Stream::CompleteTrailingMetadata() {
  if (!transport_->is_client() && closed_) messages_.clear();
  if (recv_trailing_ready_ == nullptr || !closed_ || !messages_.empty()) return;
  *recv_trailing_ = std::move(trailing_);
  if (recv_stats_ != nullptr) grpc_transport_move_stats(&stats_, recv_stats_);
  grpc_core::ExecCtx::Run(
      DEBUG_LOCATION, std::exchange(recv_trailing_ready_, nullptr),
      transport_->is_client() ? absl::OkStatus() : close_error_);
}

}  // namespace core
}  // namespace penstock
