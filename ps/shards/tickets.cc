#include "ps/shards/tickets.h"

#include <algorithm>
#include <utility>

namespace penstock::ps {

void Tickets::Ticket::End(const absl::Status& why) const {
  if (push) push(why);
  if (pull) pull(why);
  if (join) join(why);
  if (server != nullptr) server->Cancel(inner);
}

uint64_t Tickets::Add(Ticket ticket) {
  const uint64_t id = next_++;
  tickets_.emplace(id, std::move(ticket));
  return id;
}

uint64_t Tickets::AddPush(Calls::PushCallback callback) {
  Ticket ticket;
  ticket.push = std::move(callback);
  return Add(std::move(ticket));
}

uint64_t Tickets::AddPull(Calls::PullCallback callback) {
  Ticket ticket;
  ticket.pull = std::move(callback);
  return Add(std::move(ticket));
}

uint64_t Tickets::AddJoin(Calls::JoinCallback callback) {
  Ticket ticket;
  ticket.join = std::move(callback);
  return Add(std::move(ticket));
}

absl::optional<Tickets::Ticket> Tickets::Take(uint64_t ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return absl::nullopt;
  absl::optional<Ticket> taken = std::move(found->second);
  tickets_.erase(found);
  return taken;
}

bool Tickets::SetInner(uint64_t ticket, std::shared_ptr<Server> server,
                       uint64_t inner) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return false;
  found->second.server = std::move(server);
  found->second.inner = inner;
  return true;
}

void Tickets::ForgetParked(uint64_t ticket) {
  const auto is_of = [ticket](const Parked& each) {
    return each.ticket == ticket;
  };
  parked_.erase(std::remove_if(parked_.begin(), parked_.end(), is_of),
                parked_.end());
}

std::vector<Tickets::Parked> Tickets::TakeDue(uint64_t fed, bool may_answer) {
  std::vector<Parked> due;
  std::deque<Parked> left;
  for (Parked& each : parked_) {
    const bool is_due = each.is_answer ? may_answer : fed >= each.fed;
    if (is_due) {
      due.push_back(std::move(each));
    } else {
      left.push_back(std::move(each));
    }
  }
  parked_ = std::move(left);
  return due;
}

std::vector<Tickets::Ticket> Tickets::TakeAll() {
  std::vector<Ticket> all;
  for (auto& [id, ticket] : tickets_) all.push_back(std::move(ticket));
  tickets_.clear();
  parked_.clear();
  return all;
}

}  // namespace penstock::ps
