// What a client knows of a training: its servers, its model, and where what is.

#ifndef PENSTOCK_PS_CLIENT_CONNECTION_H_
#define PENSTOCK_PS_CLIENT_CONNECTION_H_

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
#include "ps/client/layout.h"
#include "ps/model/model.h"
#include "ps/placement/placement_map.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// The name of the service and a slash, to which a method's name is added.
inline constexpr char kServicePath[] = "/penstock.ps.v1.ParameterServer/";

// Immutable; any number of workers and readers may share one. Thread-safe.
class Connection {
 public:
  using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

  struct Options {
    // One to each server, in the order in which they were defined. Make them
    // with tensor::UnlimitedMessages().
    Channels servers;
    absl::Duration timeout = absl::Seconds(60);
    // Waits for a chief to define the model and give it values. Else takes what
    // is there at once.
    bool wait_for_values = true;
  };

  // Waits for servers that are not up yet, and learns what they have. Errors
  // name the server and the remedy:
  //
  //   what AwaitServers() returns, if one cannot be reached
  //   DEADLINE_EXCEEDED    no chief has come within the timeout
  //   FAILED_PRECONDITION  no server has a model; or a channel leads to another
  //                        server than the one of its place
  //   DATA_LOSS            some have one, and others were started anew
  //   ABORTED              they are of different trainings
  //   INTERNAL             what a server says cannot be
  static absl::StatusOr<std::shared_ptr<const Connection>> Open(
      const Options& options);

  // The same, from what the servers have answered.
  static absl::StatusOr<std::shared_ptr<const Connection>> FromReplies(
      Channels servers, const std::vector<v1::GetModelReply>& replies);

  const Channels& channels() const { return channels_; }
  size_t servers() const { return channels_.size(); }
  uint64_t run() const { return run_; }
  const Model& model() const { return model_; }
  const PlacementMap& placement() const { return placement_; }
  const Layout& layout() const { return layout_; }
  // Of the tables that are trained most in step: 0, if one is synchronous.
  int64_t least_staleness() const { return least_staleness_; }
  // Whether the server had values when it was asked.
  bool had_values(size_t server) const { return had_values_[server]; }

  v1::View view() const;
  // "server 1 (ps1:7000)".
  std::string NameOf(size_t server) const;
  // Of all servers, in order.
  std::vector<std::string> names() const;
  // Puts `what` and the server's name before an error's message, and the remedy
  // behind it, where it is this side that needs one.
  absl::Status Explain(absl::string_view what, size_t server,
                       const absl::Status& error) const;

 private:
  Connection(Channels channels, uint64_t run, Model model,
             PlacementMap placement, Layout layout,
             std::vector<bool> had_values);

  const Channels channels_;
  const uint64_t run_;
  const Model model_;
  const PlacementMap placement_;
  const Layout layout_;
  const int64_t least_staleness_;
  const std::vector<bool> had_values_;
};

// Asks all servers for their models, within the timeout.
absl::StatusOr<std::vector<v1::GetModelReply>> GetModels(
    const Connection::Channels& servers, bool wait, absl::Duration timeout);

// Asks one server how it is. Returns DEADLINE_EXCEEDED after `timeout`, also if
// the server could not be reached until then.
absl::StatusOr<v1::ServerReport> Describe(
    const std::shared_ptr<grpc::Channel>& server, absl::Duration timeout);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_CONNECTION_H_
