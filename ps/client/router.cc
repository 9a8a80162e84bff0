#include "ps/client/router.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/client/random_id.h"
#include "ps/replication/view_wire.h"
#include "tensor_service/calls.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr char kGetView[] = "/penstock.ps.v1.ParameterServer/GetView";

std::vector<std::unique_ptr<Route>> OwnRoutes(const Router::Channels& servers) {
  std::vector<std::unique_ptr<Route>> routes;
  for (size_t i = 0; i < servers.size(); ++i) {
    routes.push_back(
        std::make_unique<Route>(static_cast<uint32_t>(i), servers[i]));
  }
  return routes;
}

CallLoop::Request Question(const std::shared_ptr<grpc::Channel>& server) {
  CallLoop::Request question{server, kGetView,
                             tensor::FromProto(v1::GetViewRequest()),
                             base::SteadyNow() + Router::kPatience, nullptr};
  question.waits_for_server = false;
  return question;
}

// Returns the index of each shard's primary in `reply.servers`. Returns nullopt
// if the view has other servers.
absl::optional<std::vector<size_t>> PrimariesOf(const replication::View& view,
                                                const v1::GetViewReply& reply,
                                                size_t servers) {
  const auto& names = reply.servers();
  if (static_cast<size_t>(names.size()) != servers ||
      view.shards.size() != servers) {
    return absl::nullopt;
  }
  std::vector<size_t> primaries;
  for (const replication::ShardReplicas& shard : view.shards) {
    const auto at = std::find(names.begin(), names.end(), shard.primary.server);
    if (at == names.end()) return absl::nullopt;
    primaries.push_back(static_cast<size_t>(at - names.begin()));
  }
  return primaries;
}

}  // namespace

Router::Router(Channels servers, const v1::GetViewReply& first, Connect connect)
    : connect_(std::move(connect)),
      routes_(OwnRoutes(servers)),
      servers_(std::move(servers)),
      last_(RandomId() % routes_.size()),
      is_silent_(routes_.size()) {
  Take(first);
  Ask();
}

bool Router::has_view() const {
  absl::MutexLock lock(&mu_);
  return view_ > 0;
}

void Router::Pin(uint64_t run) {
  absl::MutexLock lock(&mu_);
  run_ = run;
}

void Router::Take(const v1::GetViewReply& reply) {
  if (!reply.has_view()) return;
  const auto view = replication::FromMessage(reply.view());
  if (!view.ok()) return;
  const auto primaries = PrimariesOf(*view, reply, routes_.size());
  if (!primaries) return;
  absl::MutexLock lock(&mu_);
  if (view->number <= view_ || (run_ && view->run != *run_)) return;
  // Ignores a first view in which some shards have no replica, because the
  // training of that view is over.
  if (view_ == 0 && !reply.lost_shards().empty()) return;
  if (!MeetLocked(reply)) return;
  view_ = view->number;
  for (size_t shard = 0; shard < routes_.size(); ++shard) {
    routes_[shard]->MoveTo(servers_[(*primaries)[shard]]);
  }
}

bool Router::MeetLocked(const v1::GetViewReply& reply) {
  if (names_.empty()) names_.assign(routes_.size(), "");
  for (size_t i = 0; i < names_.size(); ++i) {
    const std::string& name = reply.servers(static_cast<int>(i));
    if (names_[i] == name) continue;
    if (!names_[i].empty()) {
      if (connect_ == nullptr) return false;
      servers_[i] = connect_(name);
    }
    names_[i] = name;
  }
  return true;
}

size_t Router::Next() {
  absl::MutexLock lock(&mu_);
  if (std::find(is_silent_.begin(), is_silent_.end(), false) ==
      is_silent_.end()) {
    is_silent_.assign(servers_.size(), false);
  }
  do {
    last_ = (last_ + 1) % servers_.size();
  } while (is_silent_[last_]);
  return last_;
}

void Router::Ask() {
  const size_t server = Next();
  std::shared_ptr<grpc::Channel> channel;
  {
    absl::MutexLock lock(&mu_);
    channel = servers_[server];
  }
  loop_.Call(Question(channel), [this, server](const CallLoop::Reply& answer) {
    OnAnswer(server, answer);
  });
}

absl::Duration Router::Pause() const {
  const bool is_in_doubt =
      std::any_of(routes_.begin(), routes_.end(),
                  [](const auto& route) { return route->is_in_doubt(); });
  return is_in_doubt ? kAskSoon : kAskEvery;
}

void Router::OnAnswer(size_t server, const CallLoop::Reply& answer) {
  if (loop_.stopped()) return;
  v1::GetViewReply reply;
  const bool is_good = answer.ok() && tensor::ToProto(*answer, &reply).ok();
  if (is_good) Take(reply);
  bool is_next_soon = false;
  {
    absl::MutexLock lock(&mu_);
    is_silent_[server] = !is_good;
    is_next_soon = !is_good && std::find(is_silent_.begin(), is_silent_.end(),
                                         false) != is_silent_.end();
  }
  if (is_next_soon) return Ask();
  loop_.At(base::SteadyNow() + Pause(), [this] {
    if (!loop_.stopped()) Ask();
  });
}

std::vector<Route*> RoutesOf(const Router* router, size_t shards) {
  std::vector<Route*> routes;
  if (router == nullptr) return routes;
  for (size_t i = 0; i < shards; ++i) routes.push_back(router->route(i));
  return routes;
}

}  // namespace penstock::ps
