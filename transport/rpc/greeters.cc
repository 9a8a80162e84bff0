#include "transport/rpc/greeters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/tcp/socket.h"
#include "transport/rpc/address_text.h"

namespace penstock {
namespace rpc {
namespace {

using progress::HalfOpenTable;

// Limit the connections without a greeting: in total, and from one host. The
// limits are far above the needs of an honest cluster, because a client sends
// its greeting within one round trip. The limit per host allows for a whole
// network behind one address.
constexpr HalfOpenTable::Limits kLimits = {1024, 256};

}  // namespace

Greeters::Greeters(progress::EventLoop* loop, const std::string& token,
                   Done done)
    : loop_(loop),
      token_(token),
      done_(std::move(done)),
      table_(HalfOpenTable::WithinDescriptors(kLimits)),
      shown_limit_(metrics::Metric::kHalfOpenLimit, {}, table_.limits().in_all),
      shown_(metrics::Metric::kHalfOpen, {}) {}

void Greeters::Begin(base::UniqueFd socket, const sockaddr_storage& peer) {
  if (done_ == nullptr) return;
  fabric::tcp::SetNoDelay(socket.get());
  const std::string text = AddressText(peer);
  const Id id = table_.Add(progress::HostOf(peer));
  std::weak_ptr<Greeters> weak = shared_from_this();
  auto greeter = std::make_shared<Greeter>(
      loop_, std::move(socket), text, token_,
      [weak, id, text](absl::StatusOr<Greeted> greeted) {
        if (std::shared_ptr<Greeters> self = weak.lock()) {
          self->OnDone(id, text, std::move(greeted));
        }
      });
  greeters_[id] = greeter;
  shown_.Set(table_.size());
  greeter->Start();
  // Drops the oldest connection if there are too many. This is never the new
  // connection: it is the youngest, or has left the table because its greeting
  // is complete.
  if (table_.Excess().has_value()) (void)MakeRoom();
}

bool Greeters::MakeRoom() {
  const absl::optional<Id> next = table_.Next();
  if (!next.has_value()) return false;
  const std::shared_ptr<Greeter> greeter = greeters_.at(*next);
  greeter->MakeRoom();
  return true;
}

void Greeters::OnDone(Id id, const std::string& peer,
                      absl::StatusOr<Greeted> greeted) {
  table_.Remove(id);
  greeters_.erase(id);
  shown_.Set(table_.size());
  if (!greeted.ok()) {
    return log_.Warning(absl::StrCat("connection from ", peer,
                                     " dropped: ", greeted.status().message()));
  }
  if (done_ != nullptr) done_(*std::move(greeted));
}

void Greeters::Stop() {
  done_ = nullptr;
  const auto greeters = std::move(greeters_);
  greeters_.clear();
  for (const auto& each : greeters) {
    each.second->End();
    table_.Remove(each.first);
  }
  shown_.Set(0);
}

}  // namespace rpc
}  // namespace penstock
