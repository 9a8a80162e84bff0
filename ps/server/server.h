// One parameter server: its definition, its state and its members. Independent
// of gRPC: ps/service makes a gRPC service of the server.

#ifndef PENSTOCK_PS_SERVER_SERVER_H_
#define PENSTOCK_PS_SERVER_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/server/calls.h"
#include "ps/server/exchange.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/report.h"
#include "ps/server/row_clock.h"
#include "ps/server/steps.h"
#include "ps/server/tables.h"
#include "ps/server/training.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

//   state     event        guard                     action       next
//   --------  -----------  ------------------------  -----------  --------
//   empty     define       a restore has all values  restore      serving
//   empty     define       otherwise                              defined
//   defined   initialize   all parts have values     answer       serving
//   defined,  define       of another run, or cut;   restore      serving or
//    serving               no push has counted                    defined
//   defined,  define       of another run, with a    drop the     empty, then
//    serving               cut; abandons this run    values       as above
//   any       drain                                  end waits    draining
//
// In state `defined`, workers may join, but pulls and pushes are refused. Other
// events do not change the state. Exchange records whether the training has
// failed.
//
// Thread-safe. Waiting calls end with a callback. Calls block only:
//   - on a lock: all calls
//   - for a restore: ChooseCut() and Define()
//   - to check gradients: Push()
//   - for a snapshot: TakeSnapshot()
// Each callback runs exactly once, without locks, on the server's own thread or
// within any thread's call.
class Server final : public Calls {
 public:
  struct Options : Exchange::Options {
    Tables::Options tables;
    // Provides the first values from a checkpoint. Null: the server restores
    // nothing.
    std::shared_ptr<RestoreSource> restore;
  };

  using Definition = ServerDefinition;
  using Training = ps::Training;
  using Joined = Exchange::Joined;
  using ExchangePtr = std::shared_ptr<Exchange>;
  using PushVerdict = Exchange::PushVerdict;
  using PullSpec = Exchange::PullSpec;
  using Pulled = Exchange::Pulled;
  using ReadyCallback = std::function<void(absl::Status)>;
  struct Defined {
    bool taken = false;
    uint64_t run = 0;
    bool wants_values = false;
    absl::optional<CutId> cut;  // restored
  };
  struct Choice {
    uint64_t run = 0;
    absl::optional<CutId> cut;
  };

  explicit Server(const Options& options);
  // Calls Drain() and joins the thread. No other call may run during or after
  // the destructor.
  ~Server() override;

  // Chooses the cut and the run with which all servers begin. The run is `run`,
  // unless the server has chosen before. The choice stays the same until
  // Define() with this cut fails here. Blocks while the checkpoint is read.
  //
  // `replaces` is a run to abandon, because another server has lost it or
  // cannot restore it; 0 means none. With `replaces`, this server first
  // verifies all bytes of the checkpoint. If this server has that run, it
  // chooses the newest checkpoint and a new run; this choice stays for
  // kChoiceLimit. Returns FAILED_PRECONDITION if there is no checkpoint, or if
  // this server was started without --restore.
  absl::StatusOr<Choice> ChooseCut(uint64_t run, uint64_t replaces = 0);
  // How long a choice for `replaces` stays: long enough for the Define() that
  // follows.
  static constexpr absl::Duration kChoiceLimit = absl::Seconds(10);
  // Defines the training, and restores the cut; see ps.proto. Fails with:
  //   FAILED_PRECONDITION  the server has another model or other servers, or
  //                        cannot begin with the cut; names the difference
  //   INVALID_ARGUMENT     the model is invalid
  //   ABORTED              the server has another instance: define again
  //   or the error of a restore
  absl::StatusOr<Defined> Define(const Definition& definition);
  // The values and members of another server, from which this server is
  // defined.
  struct CopyOf {
    uint64_t instance = 0;  // the instance of the other server
    // The seed of the other server's tables; with it, the copy has room for the
    // same rows.
    uint64_t hash_seed = 0;
  };
  absl::Status DefineCopy(const Definition& definition, const CopyOf& of,
                          RestoreSource* values);

  // Returns the clocks of all ranks, without the pushes that are not applied.
  // Returns the error of a pull if the server is not serving `view`.
  absl::StatusOr<std::vector<RankClock>> AppliedClocks(const View& view) const;
  // Returns a random number that changes when the server loses its values: at
  // each start, and when Define() abandons a run.
  uint64_t instance() const { return instance_; }
  // Returns the training; null before Define().
  std::shared_ptr<const Training> training() const;
  // Returns the training if its run and epoch are those of `view`. Otherwise
  // returns an error as in ps.proto.
  absl::StatusOr<std::shared_ptr<const Training>> TrainingOf(
      const View& view) const;
  bool has_values() const;
  // Returns the restored cut, or nullopt if no cut was restored.
  absl::optional<CutId> restored() const;
  // Returns true once a push has counted.
  bool has_begun() const { return push_counts().counted > 0; }
  // Calls `callback` with OK once the server has values. Calls it with an error
  // if the server drains, and with RESOURCE_EXHAUSTED if too many calls wait.
  // Returns a ticket for Cancel().
  uint64_t AwaitValues(ReadyCallback callback);

  // Makes `worker` a member, in place of an older incarnation of its rank.
  absl::StatusOr<Joined> Join(const View& view, const WorkerId& worker);
  // Does the same as Join(), and passes the answer to a callback.
  uint64_t StartJoin(const View& view, const WorkerId& worker,
                     JoinCallback callback) override;
  // Renews the worker's lease. Makes the worker a member first if its rank is
  // free.
  absl::Status Heartbeat(uint64_t run, const WorkerId& worker) override;
  // End the membership of a worker. Lost() also counts and logs the worker as
  // lost. Both ignore a worker that is not a member. Both ignore the call if
  // the server has another run than `run`, because the worker may also be a
  // member of the present run. 0 means the present run.
  void Leave(const WorkerId& worker, uint64_t run = 0) override;
  void Lost(const WorkerId& worker, uint64_t run = 0) override;

  // Sets the first values of parts. Returns false, and changes nothing, if the
  // server already has all values. Returns FAILED_PRECONDITION unless the rank
  // is 0.
  absl::StatusOr<bool> Initialize(const View& view, const WorkerId& worker,
                                  const tensor::Bundle& values);

  // Accept a push, or answer a pull, as in ps.proto. Both return a ticket for
  // Cancel(), and may run the callback before they return. `will_help` is true
  // if the caller calls Help() as soon as the answer to the push is sent.
  uint64_t Push(const View& view, const WorkerId& worker, uint64_t clock,
                const tensor::Bundle& gradients, PushCallback callback,
                bool will_help = false) override;
  uint64_t Pull(const View& view, const PullSpec& spec,
                PullCallback callback) override;
  // Applies steps on the caller's thread; see Steps::Help().
  void Help() override;
  // Ends the call's wait with CANCELLED. Does nothing if the wait is over.
  void Cancel(uint64_t ticket) override;

  // Stops new steps, so that a cut of all servers can be chosen. Steps continue
  // after TakeSnapshot(), after ReleaseSteps(), or after
  // CutSnapshots::kHoldLimit. Ends the waiting snapshots with ABORTED.
  absl::StatusOr<HeldSteps> HoldSteps(const View& view);
  void ReleaseSteps(const View& view);
  // Returns the values at `cut`. A nullopt means the first cut that this server
  // can reach. Blocks until all pushes before the cut are applied, and applies
  // no other push meanwhile. First calls `on_wait` with a ticket for Cancel().
  // Fails with:
  //   INVALID_ARGUMENT     the servers of `view` cannot choose this cut
  //   OUT_OF_RANGE         the server is past the cut
  //   DEADLINE_EXCEEDED    the cut is not reached within `timeout`
  //   ABORTED              HoldSteps() was called again
  //   RESOURCE_EXHAUSTED,  as sparse::Table::BeginSnapshot() does
  //   FAILED_PRECONDITION
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      const View& view, absl::optional<CutPoint> cut,
      const SparseSnapshotOptions& options, absl::Duration timeout,
      const std::function<void(uint64_t ticket)>& on_wait = nullptr);

  // Returns the exchange of the training that `view` names. Fails if the server
  // has another training, or no values yet. For replicas and checkpoints.
  absl::StatusOr<ExchangePtr> Serving(const View& view) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends every wait, and refuses later calls. A step that is being applied
  // still ends. May be called again.
  void Drain();

  ServerReport report() const;
  // Returns only the push counts of the report, at a lower cost.
  PushCounts push_counts() const;

 private:
  enum class State { kEmpty, kDefined, kServing, kDraining };
  struct PendingReady {
    ReadyCallback callback;
    absl::Time deadline;  // by SteadyNow()
  };
  using Due = std::vector<std::function<void()>>;

  absl::StatusOr<Choice> ChooseAgain(uint64_t run, uint64_t replaces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(define_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Abandon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(define_mu_)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Defined> DefineNew(const Definition& definition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(define_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Begin(std::shared_ptr<Training> training,
                     const RestoredModel& restored) ABSL_LOCKS_EXCLUDED(mu_);
  void EndReadyLocked(const absl::Status& status, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireReady() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckRunLocked(uint64_t run) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckViewLocked(const View& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckHasValuesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the exchange of `run`, or null if the server has another run. 0:
  // the present run.
  ExchangePtr ExchangeOf(uint64_t run) const ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const RowClock clock_;
  std::atomic<uint64_t> next_ticket_{1};

  absl::Mutex define_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // one Define() at a time
  absl::optional<Choice> choice_ ABSL_GUARDED_BY(define_mu_);
  bool is_choice_verified_ ABSL_GUARDED_BY(define_mu_) = false;
  // The choice of a cut that replaces a run.
  struct LaterChoice {
    uint64_t replaces = 0;
    Choice choice;
    absl::Time ends;  // by SteadyNow()
  };
  absl::optional<LaterChoice> later_choice_ ABSL_GUARDED_BY(define_mu_);
  std::atomic<uint64_t> instance_;
  mutable absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kEmpty;
  std::shared_ptr<Training> training_ ABSL_GUARDED_BY(mu_);
  ExchangePtr exchange_ ABSL_GUARDED_BY(mu_);
  // The waiting calls, by ticket. Their deadlines are in the same order,
  // because all calls have the same timeout.
  std::map<uint64_t, PendingReady> pending_ready_ ABSL_GUARDED_BY(mu_);
  Steps steps_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_SERVER_H_
