// The clients of a simulated cluster, which run the code of ps/client.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_CLIENTS_H_
#define PENSTOCK_TESTS_PS_SIMULATION_CLIENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "tests/ps/simulation/lane.h"
#include "tests/ps/simulation/ledger.h"
#include "tests/ps/simulation/mail.h"

namespace penstock::ps {

// A simulated process that makes one call of the client library at a time, on
// its own thread. Read results only while the client is not busy.
class Client {
 public:
  Client(Mail* mail, uint64_t id, size_t servers)
      : mail_(mail), id_(id), channels_(mail->ChannelsOf(id, servers)) {}
  // Destroy the client only while it is not busy.
  virtual ~Client() = default;

  uint64_t id() const { return id_; }
  bool is_busy() const { return lane_.is_busy(); }
  // Ends the simulated process. Cancels its calls.
  void Kill() {
    is_killed_ = true;
    mail_->Abandon(id_);
  }
  bool is_killed() const { return is_killed_; }
  // Stops the simulated process: it gets no answers, and makes no further
  // calls.
  void Suspend() { is_suspended_ = true; }
  void Resume() { is_suspended_ = false; }
  bool is_suspended() const { return is_suspended_; }
  bool has_result() const { return has_result_ && !is_busy(); }
  // Returns the status of the last call. Call it once per call.
  absl::Status TakeResult() {
    has_result_ = false;
    return result_;
  }

 protected:
  void Start(std::function<absl::Status()> call) {
    has_result_ = true;
    lane_.Start([this, call = std::move(call)] { result_ = call(); });
  }
  const TrainingConnection::Channels& channels() const { return channels_; }

 private:
  Mail* const mail_;
  const uint64_t id_;
  const TrainingConnection::Channels channels_;
  bool is_killed_ = false;
  bool is_suspended_ = false;
  bool has_result_ = false;
  absl::Status result_;
  Lane lane_;
};

class Chief : public Client {
 public:
  using Client::Client;
  void StartDefine(const Model& model);
};

class Saver : public Client {
 public:
  using Client::Client;
  // Starts a call that takes a checkpoint.
  void StartSave(bool incremental, uint64_t keep, std::set<uint64_t> settled);
  // Returns the pushes that were settled when the checkpoint began.
  const std::set<uint64_t>& settled() const { return settled_; }

 private:
  std::set<uint64_t> settled_;
};

// A worker that joins, and then alternates between pulls and pushes.
class Trainer : public Client {
 public:
  enum class Call {
    kNone,
    kJoin,
    kInitialize,
    kPull,
    kPush,
    kLeave,
    kReattach
  };

  Trainer(Mail* mail, uint64_t id, size_t servers, uint32_t rank)
      : Client(mail, id, servers), rank_(rank) {}

  uint32_t rank() const { return rank_; }
  // Returns the worker's incarnation, which differs between all trainers.
  uint64_t incarnation() const { return id(); }
  Call call() const { return call_; }
  bool has_joined() const { return worker_ != nullptr; }
  const TrainingConnection& connection() const { return *connection_; }
  uint64_t step() const { return step_; }
  // Returns true if all servers have counted the last push.
  bool has_counted() const { return has_counted_; }
  uint64_t push() const { return push_; }

  void StartJoin();
  void StartInitialize(size_t policies);
  void StartPull();
  void StartPush(const Push& push);
  void StartLeave();
  // Handles the error of a call as a training loop does: attaches again.
  void StartReattach(const absl::Status& error);
  void EndStep() { ++step_; }

 private:
  const uint32_t rank_;
  Call call_ = Call::kNone;
  std::shared_ptr<const TrainingConnection> connection_;
  std::unique_ptr<Worker> worker_;
  uint64_t step_ = 0;
  uint64_t push_ = 0;
  bool has_counted_ = false;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_CLIENTS_H_
