#include "transport/grpc/stream.h"

#include <utility>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/error_utils.h"
#include "transport/grpc/internal/call_destinations.h"
#include "transport/grpc/internal/errors.h"
#include "transport/grpc/internal/late_slices.h"
#include "transport/grpc/internal/slice_bytes.h"
#include "transport/grpc/metadata_codec.h"
#include "transport/grpc/transport.h"
#include "transport/memory/device_ranges.h"
#include "transport/session/refusal.h"

namespace penstock {
namespace core {
namespace {

absl::Status ToStatus(const grpc_error_handle& error) {
  grpc_status_code code = GRPC_STATUS_UNKNOWN;
  std::string message;
  grpc_error_get_status(error, grpc_core::Timestamp::InfFuture(), &code,
                        &message, nullptr, nullptr);
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

// A visitor for grpc_metadata_batch::Encode(). Finds keys of the application:
// keys that gRPC does not know.
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

// Returns true if the server's answer has trailers only. Clients distinguish
// such an answer from an answer with headers. Stock HTTP/2 has the same
// condition.
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
  id_ = transport_->goaway()->NextStreamId();
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
  if (op->send_initial_metadata || op->send_trailing_metadata ||
      op->recv_trailing_metadata) {
    taken_ = true;
  }
  if (op->cancel_stream) Cancel(payload->cancel_stream.cancel_error);
  if (op->send_initial_metadata &&
      (transport_->is_client() || !IsTrailersOnly(*op))) {
    error = SendInitialMetadata(payload);
  }
  if (op->send_message) {
    complete = SendMessage(payload, op->send_trailing_metadata);
  }
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
  if (closed_) return CancelClosed(error);
  if (attached_) Abort(ToStatus(error));
  Close(error);
}

// Cancels a closed stream. The server's status has arrived, but waits for
// messages that gRPC will no longer request. As with HTTP/2, gRPC gets its own
// cancellation as the status: OK would claim that gRPC has received all
// messages.
void Stream::CancelClosed(const grpc_error_handle& error) {
  failed_ = true;
  if (transport_->is_client() && !status_taken_) SetTrailingStatus(error);
  CompleteReceives();
}

// Returns true if gRPC's server drops a call that no application has, because
// the server is shutting down. No work was done for such a call: gRPC's C++ and
// Python request the end of a call, or send data, only after an application has
// accepted the call.
bool Stream::IsRefusedBy(const absl::Status& status) const {
  return !transport_->is_client() && !taken_ && absl::IsCancelled(status);
}

// Tells the peer that the stream ends with `status`. A server's status is sent
// after earlier data. A client's reset drops queued data.
void Stream::Abort(const absl::Status& status) {
  if (transport_->is_client()) {
    session()->output().SendReset(id_, status);
    return;
  }
  if (IsRefusedBy(status)) {
    session()->output().SendReset(
        id_, session::Refusal(
                 absl::UnavailableError("the server did not take the call")));
    return;
  }
  session()->output().DropUnsent(id_);
  session()->output().SendTrailers(id_, EncodeStatus(status));
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
    if (!transport_->goaway()->AcceptsStreams()) {
      BeginElsewhere();
      return absl::OkStatus();
    }
    Open();
    auto destinations = DestinationsOf(payload->context);
    if (destinations != nullptr) {
      session()->input().PostDestinations(id_, std::move(destinations));
    }
  }
  const absl::string_view metadata =
      transport_->Encode(*op.send_initial_metadata);
  stats_.outgoing.header_bytes += metadata.size();
  session()->output().SendHeaders(id_, metadata);
  return absl::OkStatus();
}

// Refuses messages of several slices and messages in device memory, which
// SendMessage() of the session handles.
bool Stream::SendEager(const grpc_core::SliceBuffer& message, bool compressed) {
  if (message.Count() > 1) return false;
  const grpc_core::Slice slice =
      message.Count() == 0 ? grpc_core::Slice() : message.RefSlice(0);
  if (memory::FindDevice(slice.data()) != nullptr) return false;
  return session()->output().SendEager(id_, slice.as_string_view(), compressed,
                                       half_closed_);
}

bool Stream::SendMessage(grpc_transport_stream_op_batch_payload* payload,
                         bool is_last) {
  auto& op = payload->send_message;
  bool accepted = true;
  if (write_closed_) {
    op.stream_write_closed = true;
  } else {
    stats_.outgoing.data_bytes += op.send_message->Length();
    transport_->socket_node()->RecordMessagesSent(1);
    half_closed_ = is_last && transport_->is_client();
    const bool compressed = (op.flags & GRPC_WRITE_INTERNAL_COMPRESS) != 0;
    accepted = SendEager(*op.send_message, compressed) ||
               session()->output().SendMessage(id_, ToPayload(*op.send_message),
                                               compressed, half_closed_);
  }
  // Leaves a client's buffer unchanged, because the retry filter sends the same
  // buffer with each attempt.
  if (!transport_->is_client()) DropAllLate(op.send_message);
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
    if (!half_closed_) session()->output().SendHalfClose(id_);
    return absl::OkStatus();
  }
  const absl::string_view metadata =
      transport_->Encode(*op.send_trailing_metadata);
  stats_.outgoing.header_bytes += metadata.size();
  session()->output().SendTrailers(id_, metadata);
  if (op.sent != nullptr) *op.sent = true;
  trailers_sent_ = true;
  return absl::OkStatus();
}

void Stream::OnSendAccepted() {
  if (send_done_ != nullptr) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, std::exchange(send_done_, nullptr),
                            absl::OkStatus());
  }
  if (trailers_sent_) Close(absl::OkStatus());
}

// Closes the stream without sending anything, because the connection accepts no
// more streams. Waits until the channel has stopped choosing this connection.
// Otherwise gRPC's retry, or the application's next call, would choose this
// connection again.
void Stream::BeginElsewhere() {
  if (transport_->IsForeign() || !transport_->goaway()->IsTellingChannel()) {
    return CloseUnsent();
  }
  write_closed_ = true;
  grpc_stream_ref(refcount_, "penstock held");
  transport_->goaway()->CloseOnceTold(this);
}

void Stream::CloseHeld() {
  if (!closed_) CloseUnsent();  // the call may be cancelled already
  grpc_stream_unref(refcount_, "penstock held");
}

void Stream::CloseUnsent() {
  if (transport_->IsForeign()) {
    // Does not set kNotSentOnWire, unlike the code below: gRPC would retry on
    // the same connection forever.
    return Close(ErrorWithCode(
        "the connection belongs to the process that this one was forked from",
        GRPC_STATUS_UNAVAILABLE));
  }
  trailing_.Set(grpc_core::GrpcStreamNetworkState(),
                grpc_core::GrpcStreamNetworkState::kNotSentOnWire);
  Close(ErrorWithCode("the connection is going away", GRPC_STATUS_UNAVAILABLE));
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
    failed_ = true;
    if (transport_->is_client()) SetTrailingStatus(error);
  }
  if (send_done_ != nullptr) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, std::exchange(send_done_, nullptr),
                            error);
  }
  CompleteReceives();
  if (!attached_) return;
  session()->streams().Detach(id_);
  Leave();
}

// Detaches the stream from the transport. Called after the session has detached
// the stream.
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

}  // namespace core
}  // namespace penstock
