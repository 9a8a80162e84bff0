// The client's side of the negotiation: offers Penstock behind the HTTP/2
// preface, and examines the server's answer.

#ifndef PENSTOCK_TRANSPORT_GRPC_CLIENT_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_GRPC_CLIENT_NEGOTIATOR_H_

#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/negotiator.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// A handshake has one of three results:
//  - an open transport in the channel argument kTransportArg, once its path is
//    chosen;
//  - an endpoint on which stock HTTP/2 may begin as if nothing had happened.
//  The
//    peer may yet prove to speak something else;
//  - an error, if the connection breaks or the policy is not satisfied.
class ClientNegotiator : public Negotiator {
 public:
  // The channel argument with the Transport*. The taker owns the transport's
  // first reference.
  static constexpr const char* kTransportArg = "penstock.internal.transport";

  explicit ClientNegotiator(Settings settings)
      : settings_(std::move(settings)) {}
  const char* name() const override { return "penstock"; }

  // Logs and counts that the connection to `peer` is HTTP/2.
  static void ReportHttp2(const std::string& peer);

 private:
  void BeginLocked() override;
  void OnReadLocked() override;
  void OnWrittenLocked() override { ReadLocked(); }
  void TakeOverClientLocked(uint8_t version, size_t consumed);
  void FallBackLocked();
  void OnSettled(const absl::Status& status);

  const Settings settings_;
  Transport* opened_ = nullptr;  // until it is handed on
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_CLIENT_NEGOTIATOR_H_
