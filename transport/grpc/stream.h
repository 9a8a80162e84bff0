// A stream, which carries one RPC. Translates gRPC's batches of operations into
// calls of the session, and the session's events into gRPC's closures.

#ifndef PENSTOCK_TRANSPORT_GRPC_STREAM_H_
#define PENSTOCK_TRANSPORT_GRPC_STREAM_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "src/core/lib/resource_quota/arena.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "transport/base/fifo.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/stream_list.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

class Transport;

// A stream of a Transport. Lives in memory that gRPC provides, from init_stream
// to destroy_stream. Call all functions except constructor and destructor under
// the transport's lock, in an ExecCtx. Closures are scheduled in the ExecCtx,
// so none runs under the lock.
class Stream : public session::StreamEvents, public StreamList::Node {
 public:
  Stream(Transport* transport, grpc_stream_refcount* refcount,
         grpc_core::Arena* arena);
  ~Stream() override;

  // Accepts stream `id`, which the client has opened. For servers only.
  void Accept(uint32_t id);
  // Starts gRPC's operations, and completes those that can complete now.
  void PerformOp(grpc_transport_stream_op_batch* op);
  // Ends the stream, which then sends and receives nothing more. Each of gRPC's
  // operations completes with the data that has arrived. An operation without
  // data fails with `error`.
  void Close(const grpc_error_handle& error);
  // Closes a stream that the server never saw. Otherwise like Close(). gRPC
  // retries the call once.
  void CloseUnseen(const grpc_error_handle& error);
  // Closes a stream that has sent nothing because the connection is being left.
  // Otherwise like Close(). gRPC retries on another connection.
  void CloseUnsent();
  // Ends the wait that Transport::CloseOnceTold() began, and closes the stream.
  void CloseHeld();

  uint32_t id() const { return id_; }

  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(const memory::Payload& message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override;

 private:
  struct Message {
    // The slices. One is inline, because most messages have one slice.
    absl::InlinedVector<grpc_core::Slice, 1> slices;
    uint32_t flags = 0;
    // The size of a message that was not read because it exceeds gRPC's limit.
    // 0 for other messages.
    uint64_t refused_bytes = 0;
  };

  // Decodes `metadata` to `*batch`. `implied_bytes` is the size of entries that
  // HTTP/2 would send and Penstock omits. Returns RESOURCE_EXHAUSTED if the sum
  // of both sizes exceeds the limit. Returns INTERNAL if the metadata is
  // malformed, or if gRPC does not allow it.
  absl::Status ReceiveMetadata(absl::string_view metadata, size_t implied_bytes,
                               grpc_metadata_batch* batch);
  void CancelFor(const absl::Status& status);
  void Cancel(const grpc_error_handle& error);
  void CancelClosed(const grpc_error_handle& error);
  grpc_error_handle SendInitialMetadata(
      grpc_transport_stream_op_batch_payload* payload);
  // Sends the message immediately, with its bytes in the packet. Returns false,
  // and sends nothing, if the message must be announced or must wait.
  bool SendEager(const grpc_core::SliceBuffer& message, bool compressed);
  // Sends or queues the message. Returns false if the message is queued:
  // on_complete then waits until the stream's window has room.
  bool SendMessage(grpc_transport_stream_op_batch_payload* payload,
                   bool is_last);
  grpc_error_handle SendTrailingMetadata(
      grpc_transport_stream_op_batch_payload* payload);
  void StartReceives(grpc_transport_stream_op_batch* op);
  void Open();
  void BeginElsewhere();
  void Leave();
  void Abort(const absl::Status& status);
  bool IsRefusedBy(const absl::Status& status) const;

  // Completes the receiving operations for which everything has arrived.
  void CompleteReceives();
  void CompleteInitialMetadata();
  void CompleteMessage();
  void DeliverMessage(Message message);
  void RefuseMessage(uint64_t bytes);
  void CompleteTrailingMetadata();
  void SetTrailingStatus(const grpc_error_handle& error);

  session::Session* session() const;

  Transport* const transport_;
  grpc_stream_refcount* const refcount_;
  uint32_t id_ = 0;
  bool attached_ = false;  // attached to the session; holds gRPC's reference

  bool taken_ = false;  // on a server: an application has the call
  bool write_closed_ = false;
  bool half_closed_ = false;    // on a client: sent with the last message
  bool trailers_sent_ = false;  // on a server
  bool read_closed_ = false;    // the peer sends no more messages
  bool headers_received_ = false;
  bool closed_ = false;
  bool failed_ = false;        // closed with an error, or cancelled afterwards
  bool status_taken_ = false;  // gRPC has the trailing metadata
  grpc_error_handle close_error_;

  grpc_metadata_batch initial_;
  grpc_metadata_batch trailing_;
  base::Fifo<Message> messages_;
  grpc_transport_stream_stats stats_ = {};

  grpc_closure* send_done_ =
      nullptr;  // set while a message waits for the window
  grpc_metadata_batch* recv_initial_ = nullptr;
  grpc_closure* recv_initial_ready_ = nullptr;
  bool* trailers_only_ = nullptr;
  absl::optional<grpc_core::SliceBuffer>* recv_message_ = nullptr;
  uint32_t* recv_flags_ = nullptr;
  bool* recv_failed_ = nullptr;
  grpc_closure* recv_message_ready_ = nullptr;
  grpc_metadata_batch* recv_trailing_ = nullptr;
  grpc_transport_stream_stats* recv_stats_ = nullptr;
  grpc_closure* recv_trailing_ready_ = nullptr;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_STREAM_H_
