// The functions by which gRPC calls the transport.

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/error_utils.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport.h"

namespace penstock {
namespace core {
namespace {

void RunNow(grpc_closure* closure, const grpc_error_handle& error) {
  if (closure != nullptr) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, closure, error);
  }
}

}  // namespace

struct Transport::Operations {
  static Stream* AsStream(grpc_stream* stream) {
    return reinterpret_cast<Stream*>(stream);
  }

  static int InitStream(grpc_transport* base, grpc_stream* memory,
                        grpc_stream_refcount* refcount, const void* server_data,
                        grpc_core::Arena* arena) {
    Transport* transport = From(base);
    auto* stream = new (memory) Stream(transport, refcount, arena);
    transport->Ref();
    if (server_data != nullptr) {
      Section section(transport);
      stream->Accept(
          static_cast<uint32_t>(reinterpret_cast<uintptr_t>(server_data)));
    }
    return 0;
  }

  static void SetPollset(grpc_transport* base, grpc_stream*,
                         grpc_pollset* pollset) {
    grpc_endpoint_add_to_pollset(From(base)->stream_->endpoint(), pollset);
  }

  static void SetPollsetSet(grpc_transport* base, grpc_stream*,
                            grpc_pollset_set* pollset_set) {
    grpc_endpoint_add_to_pollset_set(From(base)->stream_->endpoint(),
                                     pollset_set);
  }

  static void PerformStreamOp(grpc_transport* base, grpc_stream* stream,
                              grpc_transport_stream_op_batch* op) {
    Section section(From(base));
    AsStream(stream)->PerformOp(op);
  }

  static void PerformOp(grpc_transport* base, grpc_transport_op* op) {
    Transport* transport = From(base);
    Section section(transport);
    transport->goaway_.Watch(op);
    if (op->set_accept_stream) {
      transport->acceptor_.SetFunction(
          {op->set_accept_stream_fn, op->set_accept_stream_user_data});
    }
    BindPolling(transport, op);
    SendPing(transport, op);
    if (!op->goaway_error.ok()) transport->goaway_.Begin(op->goaway_error);
    if (!op->disconnect_with_error.ok()) {
      transport->goaway_.Disconnect(op->disconnect_with_error);
    }
    transport->acceptor_.Consume(op->on_consumed);
  }

  static void BindPolling(Transport* transport, grpc_transport_op* op) {
    grpc_endpoint* endpoint = transport->stream_->endpoint();
    if (op->bind_pollset != nullptr) {
      grpc_endpoint_add_to_pollset(endpoint, op->bind_pollset);
    }
    if (op->bind_pollset_set != nullptr) {
      grpc_endpoint_add_to_pollset_set(endpoint, op->bind_pollset_set);
    }
  }

  static void SendPing(Transport* transport, grpc_transport_op* op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transport->mu_) {
    RunNow(op->send_ping.on_initiate, absl::OkStatus());
    if (op->send_ping.on_ack == nullptr) return;
    transport->pings_.Send(op->send_ping.on_ack);
  }

  static void DestroyStream(grpc_transport* base, grpc_stream* memory,
                            grpc_closure* then) {
    Transport* transport = From(base);
    const bool was_open = AsStream(memory)->id() != 0;
    AsStream(memory)->~Stream();
    if (was_open) transport->OnDestroyed();
    RunNow(then, absl::OkStatus());
    transport->Unref();
  }

  static void Destroy(grpc_transport* base) {
    Transport* transport = From(base);
    transport->Close(
        absl::UnavailableError("the transport is not used any more"));
    transport->Unref();
  }

  static grpc_endpoint* GetEndpoint(grpc_transport* base) {
    return From(base)->stream_->endpoint();
  }
};

const grpc_transport_vtable* Transport::Vtable() {
  // The table of functions. The transport's name must contain "http", because
  // gRPC adds its http filters (compression, user agent, header checks) only
  // then. gRPC also puts the name into the user agent.
  static const grpc_transport_vtable vtable = {
      sizeof(Stream),
      "penstock-http",
      Operations::InitStream,
      nullptr,
      Operations::SetPollset,
      Operations::SetPollsetSet,
      Operations::PerformStreamOp,
      Operations::PerformOp,
      Operations::DestroyStream,
      Operations::Destroy,
      Operations::GetEndpoint,
  };
  return &vtable;
}

}  // namespace core
}  // namespace penstock
