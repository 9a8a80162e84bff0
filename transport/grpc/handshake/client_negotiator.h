// The client's side of the negotiation. Offers Penstock after the HTTP/2
// preface, and examines the server's answer.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CLIENT_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CLIENT_NEGOTIATOR_H_

#include "transport/grpc/handshake/negotiator.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// The client's side of a negotiation. A handshake has one of three results:
//  - An open transport in the channel argument kTransportArg, after its path
//    was chosen.
//  - An endpoint on which stock HTTP/2 may start as if no negotiation had
//    happened. The peer may still turn out to speak neither protocol.
//  - An error, if the connection breaks or the policy is not satisfied.
class ClientNegotiator : public Negotiator {
 public:
  // The channel argument with the Transport*. The code that takes the pointer
  // owns the transport's first reference.
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
  Transport* opened_ = nullptr;  // owned until handed on
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CLIENT_NEGOTIATOR_H_
