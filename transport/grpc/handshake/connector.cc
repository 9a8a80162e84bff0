#include "transport/grpc/handshake/connector.h"

#include <grpc/support/alloc.h>

#include <utility>

#include "src/core/ext/transport/chttp2/transport/chttp2_transport.h"
#include "src/core/lib/address_utils/sockaddr_utils.h"
#include "src/core/lib/config/core_configuration.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/handshaker_registry.h"
#include "src/core/lib/transport/tcp_connect_handshaker.h"
#include "transport/grpc/handshake/client_negotiator.h"

namespace penstock {
namespace core {

void Connector::Connect(const Args& args, Result* result,
                        grpc_closure* notify) {
  grpc_core::RefCountedPtr<grpc_core::HandshakeManager> handshakes;
  grpc_core::ChannelArgs channel_args;
  {
    grpc_core::MutexLock lock(&mu_);
    args_ = args;
    result_ = result;
    notify_ = notify;
    absl::StatusOr<std::string> address = grpc_sockaddr_to_uri(args.address);
    if (!address.ok() || shut_down_) {
      grpc_core::ExecCtx::Run(
          DEBUG_LOCATION, std::exchange(notify_, nullptr),
          shut_down_ ? GRPC_ERROR_CREATE("connector shutdown")
                     : GRPC_ERROR_CREATE(address.status().ToString()));
      return;
    }
    channel_args =
        args.channel_args
            .Set(GRPC_ARG_TCP_HANDSHAKER_RESOLVED_ADDRESS, *address)
            .Set(GRPC_ARG_TCP_HANDSHAKER_BIND_ENDPOINT_TO_POLLSET, 1);
    handshakes_ = grpc_core::MakeRefCounted<grpc_core::HandshakeManager>();
    handshakes = handshakes_;
  }
  grpc_core::CoreConfiguration::Get().handshaker_registry().AddHandshakers(
      grpc_core::HANDSHAKER_CLIENT, channel_args, args.interested_parties,
      handshakes.get());
  handshakes->Add(grpc_core::MakeRefCounted<ClientNegotiator>(settings_));
  Ref().release();  // released by OnHandshakeDone()
  handshakes->DoHandshake(/*endpoint=*/nullptr, channel_args, args.deadline,
                          /*acceptor=*/nullptr, OnHandshakeDone, this);
}

void Connector::Shutdown(grpc_error_handle error) {
  grpc_core::MutexLock lock(&mu_);
  shut_down_ = true;
  if (handshakes_ != nullptr) handshakes_->Shutdown(error);
  if (http2_ != nullptr) http2_->Shutdown(error);
}

void Connector::OnHandshakeDone(void* arg, grpc_error_handle error) {
  auto* args = static_cast<grpc_core::HandshakerArgs*>(arg);
  auto* self = static_cast<Connector*>(args->user_data);
  {
    grpc_core::MutexLock lock(&self->mu_);
    if (error.ok() && self->shut_down_) {
      error = GRPC_ERROR_CREATE("connector shutdown");
    }
    if (error.ok()) {
      self->DeliverLocked(args);
    } else {
      Discard(args, error);
      self->result_->Reset();
      self->NotifyLocked(error);
    }
    self->handshakes_.reset();
  }
  self->Unref();
}

void Connector::NotifyLocked(const grpc_error_handle& error) {
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, std::exchange(notify_, nullptr),
                          error);
}

// Destroys the result of a handshake. A failed handshake has closed its
// endpoint already. A handshake that was shut down at its end may still deliver
// a transport or an endpoint.
void Connector::Discard(grpc_core::HandshakerArgs* args,
                        grpc_error_handle why) {
  if (auto* transport =
          args->args.GetPointer<Transport>(ClientNegotiator::kTransportArg)) {
    grpc_transport_destroy(transport);
  } else if (args->endpoint != nullptr) {
    grpc_endpoint_shutdown(args->endpoint, why);
    grpc_endpoint_destroy(args->endpoint);
    grpc_slice_buffer_destroy(args->read_buffer);
    gpr_free(args->read_buffer);
  }
}

void Connector::DeliverLocked(grpc_core::HandshakerArgs* args) {
  auto* transport =
      args->args.GetPointer<Transport>(ClientNegotiator::kTransportArg);
  result_->channel_args = args->args.Remove(ClientNegotiator::kTransportArg);
  if (transport == nullptr) return StartHttp2Locked(args);
  result_->transport = transport;
  result_->socket_node = transport->socket_node();
  grpc_endpoint_delete_from_pollset_set(grpc_transport_get_endpoint(transport),
                                        args_.interested_parties);
  NotifyLocked(absl::OkStatus());
}

void Connector::StartHttp2Locked(grpc_core::HandshakerArgs* args) {
  const std::string peer(grpc_endpoint_get_peer(args->endpoint));
  Ref().release();  // released after OnHttp2()
  http2_ = Http2Start::Begin(
      args, args_, [this, peer](absl::StatusOr<grpc_transport*> transport) {
        OnHttp2(std::move(transport), peer);
        Unref();
      });
}

void Connector::OnHttp2(absl::StatusOr<grpc_transport*> transport,
                        const std::string& peer) {
  grpc_core::MutexLock lock(&mu_);
  http2_.reset();
  if (transport.ok() && shut_down_) {
    grpc_transport_destroy(*transport);
    transport = GRPC_ERROR_CREATE("connector shutdown");
  }
  if (!transport.ok()) {
    result_->Reset();
    return NotifyLocked(transport.status());
  }
  ClientNegotiator::ReportHttp2(peer);
  result_->transport = *transport;
  result_->socket_node = grpc_chttp2_transport_get_socket_node(*transport);
  NotifyLocked(absl::OkStatus());
}

}  // namespace core
}  // namespace penstock
