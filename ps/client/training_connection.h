// A client's view of a training: the servers, the model, and the placement.

#ifndef PENSTOCK_PS_CLIENT_TRAINING_CONNECTION_H_
#define PENSTOCK_PS_CLIENT_TRAINING_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/client/cut.h"
#include "ps/client/layout.h"
#include "ps/client/route.h"
#include "ps/client/router.h"
#include "ps/model/model.h"
#include "ps/placement/placement_map.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// The path of the service, to which a method's name is appended.
inline constexpr char kServicePath[] = "/penstock.ps.v1.ParameterServer/";

// The servers and the model of one training. Immutable and thread-safe. Any
// number of workers and readers may share one connection.
class TrainingConnection {
 public:
  using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

  struct Options {
    // One channel to each server, in the order in which the servers were
    // defined. Make the channels with tensor::UnlimitedMessages().
    Channels servers;
    absl::Duration timeout = absl::Seconds(60);
    // True to wait for a chief that defines the model and its values. If false,
    // returns immediately with the present model.
    bool wait_for_values = true;
    // Makes a channel to a server that replaces another server while the
    // connection exists; see Router. May be empty.
    Router::Connect connect = nullptr;
  };

  // Waits for servers that are not up yet, and asks for their models. Errors
  // name the server and the remedy:
  //
  //   AwaitServers()'s error, if a server is unreachable
  //   DEADLINE_EXCEEDED    no chief has come within the timeout
  //   FAILED_PRECONDITION  no server has a model; or the channels are not in
  //                        the order of the servers
  //   DATA_LOSS            some servers have a model, and others were restarted
  //   ABORTED              the servers belong to different trainings
  //   INTERNAL             a server's reply is inconsistent
  static absl::StatusOr<std::shared_ptr<const TrainingConnection>> Open(
      const Options& options);

  // Makes a connection from the servers' replies to GetModel(). `router` is
  // null unless the servers replicate their shards.
  static absl::StatusOr<std::shared_ptr<const TrainingConnection>> FromReplies(
      Channels servers, const std::vector<v1::GetModelReply>& replies,
      std::shared_ptr<Router> router = nullptr);

  // Returns the channels to the servers, in the order of the shards. A shard
  // may be at another server now: see route().
  const Channels& channels() const { return channels_; }
  // Returns the route to the primary of a shard; null if shards are not
  // replicated. A shard has the number of its first server.
  Route* route(size_t server) const {
    return router_ == nullptr ? nullptr : router_->route(server);
  }
  // Returns all routes, or none.
  std::vector<Route*> routes() const {
    return RoutesOf(router_.get(), servers());
  }
  size_t servers() const { return channels_.size(); }
  uint64_t run() const { return begun_.run; }
  // Returns the run, and the checkpoint with which the run began.
  const RunAndCut& begun() const { return begun_; }
  const Model& model() const { return model_; }
  const PlacementMap& placement() const { return placement_; }
  const Layout& layout() const { return layout_; }
  // Returns the lowest staleness of all tables. 0 means that a table is
  // synchronous.
  int64_t least_staleness() const { return least_staleness_; }
  // Returns true if the server had values when this connection was opened.
  bool had_values(size_t server) const { return had_values_[server]; }

  v1::View view() const;
  // Returns the server's name, such as "server 1 (ps1:7000)".
  std::string NameOf(size_t server) const;
  // Returns the names of all servers, in order.
  std::vector<std::string> names() const;
  // Puts `what` and the server's name before an error's message. Appends a
  // remedy to a client-side error.
  absl::Status Explain(absl::string_view what, size_t server,
                       const absl::Status& error) const;

 private:
  TrainingConnection(Channels channels, RunAndCut begun, Model model,
                     PlacementMap placement, Layout layout,
                     std::vector<bool> had_values,
                     std::shared_ptr<Router> router);

  const Channels channels_;
  const RunAndCut begun_;
  const Model model_;
  const PlacementMap placement_;
  const Layout layout_;
  const int64_t least_staleness_;
  const std::vector<bool> had_values_;
  const std::shared_ptr<Router> router_;  // null: shards stay at their servers
};

// Waits until all servers answer, or, if they replicate their shards, until a
// server names the shards' primaries. Returns the router, or null if shards are
// not replicated. `connect` is for Router. Returns the errors of
// AwaitServers().
absl::StatusOr<std::shared_ptr<Router>> ReachServers(
    const TrainingConnection::Channels& servers, absl::Duration timeout,
    const Router::Connect& connect = nullptr);

// Returns all servers' replies to GetModel(). Limits the wait by the timeout.
// With a router, asks the shards' primaries, and repeats questions that do not
// reach them.
absl::StatusOr<std::vector<v1::GetModelReply>> GetModels(
    const TrainingConnection::Channels& servers, const Router* router,
    bool wait, absl::Duration timeout);

// Requests one server's report. Blocks until the reply arrives. Returns
// DEADLINE_EXCEEDED after `timeout`, even if the server is unreachable.
absl::StatusOr<v1::ServerReport> Describe(
    const std::shared_ptr<grpc::Channel>& server, absl::Duration timeout);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_TRAINING_CONNECTION_H_
