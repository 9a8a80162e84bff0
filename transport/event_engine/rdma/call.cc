#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/event_engine/meeting/redial.h"
#include "transport/event_engine/rdma/rdma.h"

namespace penstock {
namespace event_engine {
namespace {

// The pauses between the calls. A server that is not busy ends TLS's handshake
// a few milliseconds after the client, and refuses an unknown token
// immediately.
constexpr absl::Duration kPauses[] = {
    absl::Milliseconds(5), absl::Milliseconds(50), absl::Milliseconds(500),
    absl::Seconds(2)};

}  // namespace

std::unique_ptr<fabric::PendingConnect> CallByRdma(
    std::shared_ptr<fabric::Fabric> rdma, const TcpAddress& server,
    const std::string& token, fabric::ConnectCallback done) {
  const std::string offer =
      absl::StrCat(server.IpText(), " ", server.port, "\n");
  return Redial::Start(
      [rdma = std::move(rdma), offer, token](fabric::ConnectCallback answered) {
        return rdma->Connect(offer, token, std::move(answered));
      },
      {std::begin(kPauses), std::end(kPauses)}, std::move(done));
}

}  // namespace event_engine
}  // namespace penstock
