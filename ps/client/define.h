// Defines a training: its model and its servers. A chief calls this first.

#ifndef PENSTOCK_PS_CLIENT_DEFINE_H_
#define PENSTOCK_PS_CLIENT_DEFINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/client/cut.h"
#include "ps/client/training_connection.h"
#include "ps/model/model.h"

namespace penstock::ps {

struct Definition {
  // One channel to each server; see TrainingConnection::Options.
  TrainingConnection::Channels servers;
  // The addresses at which workers reach the servers, in the same order.
  std::vector<std::string> addresses;
  Model model;
  // Limits the whole call: the wait for servers that are not up yet, and the
  // time in which they read a checkpoint.
  absl::Duration timeout = absl::Minutes(10);
  // The training that the servers must continue; see Reattach(). If unset, they
  // continue the training that they have, or begin a new one.
  absl::optional<RunAndCut> continues = absl::nullopt;
  // See TrainingConnection::Options.
  Router::Connect connect = nullptr;
};

struct Defined {
  std::shared_ptr<const TrainingConnection> connection;
  // True if the servers wait for Worker::Initialize(). False if an earlier
  // chief or a checkpoint has given all servers their values.
  bool wants_values = false;
  // True if the servers had the model already, from an earlier chief.
  bool is_adopted = false;
  // The step of the checkpoint that the servers have begun with; 0 if none.
  uint64_t restored_step = 0;
};

// Defines the model at all servers. If the servers already have the model,
// continues their run. An earlier chief that died or timed out may have left
// some servers without a model. Until a push has counted, each further call
// completes that definition. Servers continue to restore between the calls.
//
// All servers restore the same cut, concurrently. Server 0 chooses the cut, if
// its flags ask for a restore. Fails if a server cannot begin with that cut.
//
// If some servers have trained values and others have lost theirs in a restart,
// all servers restore the newest checkpoint. Their processes continue
// meanwhile. Pushes that the checkpoint lacks are lost. Needs --restore at each
// server, and a checkpoint that the lost run wrote or began with. If server 0
// has no such checkpoint, all values are kept.
//
// Returns the errors of TrainingConnection::Open(), and:
// - DATA_LOSS if values are lost and cannot be restored from the checkpoint;
//   names the remedy;
// - ABORTED if other clients define at the same time, or a server was restarted
//   meanwhile: call again;
// - FAILED_PRECONDITION, with the difference, if the servers have another
//   model, or if a server has another cut or none;
// - INVALID_ARGUMENT if the model is invalid.
absl::StatusOr<Defined> Define(const Definition& definition);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_DEFINE_H_
