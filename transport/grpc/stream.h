// A stream, that is one RPC: turns gRPC's batches of operations into calls of
// the session, and the session's events into gRPC's closures.

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
#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/stream_list.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

class Transport;

// Lives in memory that gRPC provides in init_stream, until destroy_stream. Call
// everything but constructor and destructor under the transport's lock, in an
// ExecCtx. Closures go to the ExecCtx, so none runs under the lock.
class Stream : public session::StreamEvents, public StreamList::Node {
 public:
  Stream(Transport* transport, grpc_stream_refcount* refcount,
         grpc_core::Arena* arena);
  ~Stream() override;

  // Takes over stream `id`, which the client has opened. On the server only.
  void Accept(uint32_t id);
  // Starts gRPC's operations, and completes those that can complete now.
  void PerformOp(grpc_transport_stream_op_batch* op);
  // Ends the stream: sends and receives nothing more. gRPC's operations
  // complete with what has been received, or else with `error`.
  void Close(const grpc_error_handle& error);
  // As Close(), if the server never saw the stream: gRPC tries once more.
  void CloseUnseen(const grpc_error_handle& error);
  // As Close(), if nothing was sent because the connection goes away: gRPC
  // tries on another connection.
  void CloseUnsent();
  // Ends the wait of a stream that Transport::CloseOnceTold() has got.
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
    // One inline: most messages are in one piece.
    absl::InlinedVector<grpc_core::Slice, 1> slices;
    uint32_t flags = 0;
    // If not 0, the message is too large for gRPC and was not read. This is its
    // size.
    uint64_t refused_bytes = 0;
  };

  // Decodes metadata to `*batch`. Returns RESOURCE_EXHAUSTED if it exceeds the
  // limit, together with `implied_bytes`, which HTTP/2 would send and Penstock
  // does not. Returns INTERNAL if gRPC does not allow it.
  absl::Status ReceiveMetadata(absl::string_view metadata, size_t implied_bytes,
                               grpc_metadata_batch* batch);
  void CancelFor(const absl::Status& status);
  void Cancel(const grpc_error_handle& error);
  void CancelClosed(const grpc_error_handle& error);
  grpc_error_handle SendInitialMetadata(
      grpc_transport_stream_op_batch_payload* payload);
  // Sends the message if it is short enough to go eagerly at once. If not,
  // returns false.
  bool SendEager(const grpc_core::SliceBuffer& message, bool compressed);
  // Sends or queues the message. Returns false if it is queued: on_complete
  // then waits until the stream's window has room.
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
  bool attached_ = false;  // to the session; gRPC's reference is held meanwhile

  bool taken_ = false;  // on a server: gRPC has given it to an application
  bool write_closed_ = false;
  bool half_closed_ = false;    // on a client: the last message said so
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

  grpc_closure* send_done_ = nullptr;  // of a message that waits for the window
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
