// One RPC: between gRPC's batches of operations and the session's events.

#ifndef PENSTOCK_TRANSPORT_GRPC_STREAM_H_
#define PENSTOCK_TRANSPORT_GRPC_STREAM_H_

#include <string>

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

// Lives in the memory that gRPC gives it in init_stream. Every function is
// called under the transport's lock; closures go to the ExecCtx, so that none
// runs under it.
class Stream : public session::StreamEvents, public StreamList::Node {
 public:
  Stream(Transport* transport, grpc_stream_refcount* refcount,
         grpc_core::Arena* arena);
  ~Stream() override;

  // The server's side: takes over stream `id`, which the peer opened.
  void Accept(uint32_t id);
  void PerformOp(grpc_transport_stream_op_batch* op);
  // Ends the stream on both sides' behalf: nothing more is sent or received.
  void Close(const grpc_error_handle& error);
  // The peer says that it never saw it: gRPC tries again elsewhere, once.
  void CloseUnseen(const grpc_error_handle& error);
  // Nothing was sent, as the connection goes away: gRPC tries elsewhere.
  void CloseUnsent();

  uint32_t id() const { return id_; }

  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(memory::Bytes message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override;

 private:
  struct Message {
    grpc_core::Slice bytes;
    uint32_t flags;
    // Not 0: it has so many bytes, more than gRPC takes, and was not read.
    uint64_t refused_bytes;
  };

  // RESOURCE_EXHAUSTED: too much of it, with `implied_bytes` that the peer need
  // not send. INTERNAL: gRPC does not take it.
  absl::Status ReceiveMetadata(absl::string_view metadata, size_t implied_bytes,
                               grpc_metadata_batch* batch);
  void CancelFor(const absl::Status& status);
  void Cancel(const grpc_error_handle& error);
  void CancelClosed(const grpc_error_handle& error);
  grpc_error_handle SendInitialMetadata(
      grpc_transport_stream_op_batch_payload* payload);
  // True: it is short, and has been sent.
  bool SendEager(const grpc_core::SliceBuffer& message, bool compressed);
  // False: on_complete waits for the window.
  bool SendMessage(grpc_transport_stream_op_batch_payload* payload,
                   bool is_last);
  grpc_error_handle SendTrailingMetadata(
      grpc_transport_stream_op_batch_payload* payload);
  void StartReceives(grpc_transport_stream_op_batch* op);
  void Open();
  void Leave();
  void Abort(const absl::Status& status);
  bool IsRefusedBy(const absl::Status& status) const;

  // Complete what gRPC waits for, as far as it has arrived.
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
  bool attached_ = false;  // to the session, which then holds a reference

  bool taken_ = false;  // a server's: gRPC has given it to an application
  bool write_closed_ = false;
  bool half_closed_ = false;    // by a client, with its last message
  bool trailers_sent_ = false;  // by a server
  bool read_closed_ = false;    // the peer sends no more messages
  bool headers_received_ = false;
  bool closed_ = false;
  bool failed_ = false;        // closed by an error, or cancelled after that
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
