// Follows the views of servers that replicate their shards.

#ifndef PENSTOCK_PS_CLIENT_ROUTER_H_
#define PENSTOCK_PS_CLIENT_ROUTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/channel.h"
#include "ps/client/call_loop.h"
#include "ps/client/route.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// The routes to all shards. Every kAskEvery, asks one server for the newest
// view, in turn, and skips servers that do not answer. Asks every kAskSoon
// while a route is in doubt. A client therefore needs no etcd.
//
// Ignores views that are older than the newest one, of another run than
// Pin()'s, or that name unknown servers. Thread-safe.
class Router {
 public:
  using Channels = std::vector<std::shared_ptr<grpc::Channel>>;
  // Makes a channel to the server at an address. Must be thread-safe.
  using Connect =
      std::function<std::shared_ptr<grpc::Channel>(const std::string&)>;

  // Four small calls a second. A worker thus learns of a new primary within
  // the time that the primary needs to begin.
  static constexpr absl::Duration kAskEvery = absl::Milliseconds(250);
  // Short compared with a failover. Longer than a call takes, so that a small
  // server can answer a thousand workers.
  static constexpr absl::Duration kAskSoon = absl::Milliseconds(50);
  // Limits the wait for one server's answer.
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  // Begins with `first`, an answer of any server. servers[i] is the first
  // server of shard i. `connect` makes the channels to servers that later
  // replace others. Without `connect`, views that name such servers are
  // ignored.
  Router(Channels servers, const v1::GetViewReply& first,
         Connect connect = nullptr);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Returns true if a view was accepted. Before that, the shards are at their
  // own servers.
  bool has_view() const ABSL_LOCKS_EXCLUDED(mu_);
  // Accepts only views of `run` from now on.
  void Pin(uint64_t run) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a route, which lives as long as the router.
  Route* route(size_t shard) const { return routes_[shard].get(); }

 private:
  void Take(const v1::GetViewReply& reply) ABSL_LOCKS_EXCLUDED(mu_);
  // Connects to the servers that only the new view has. Returns false if that
  // is not possible.
  bool MeetLocked(const v1::GetViewReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the next server to ask.
  size_t Next() ABSL_LOCKS_EXCLUDED(mu_);
  void Ask();
  // Returns how long the router waits before it asks the next server.
  absl::Duration Pause() const;
  void OnAnswer(size_t server, const CallLoop::Reply& answer);

  const Connect connect_;
  const std::vector<std::unique_ptr<Route>> routes_;
  mutable absl::Mutex mu_;
  Channels servers_ ABSL_GUARDED_BY(mu_);
  // The servers' addresses; empty before the first view.
  std::vector<std::string> names_ ABSL_GUARDED_BY(mu_);
  uint64_t view_ ABSL_GUARDED_BY(mu_) = 0;  // the number of the newest view
  absl::optional<uint64_t> run_ ABSL_GUARDED_BY(mu_);
  size_t last_ ABSL_GUARDED_BY(mu_);  // the server that was asked last
  // By server: true if the last request got no answer.
  std::vector<bool> is_silent_ ABSL_GUARDED_BY(mu_);
  CallLoop loop_;  // declared last, because its callbacks use all other members
};

// Returns the routes to `shards` shards, or none if `router` is null.
std::vector<Route*> RoutesOf(const Router* router, size_t shards);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_ROUTER_H_
