// One parameter server: what it is defined as, from when on it serves, and to
// whom. Knows no gRPC; ps/service makes it a service.

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
#include "ps/server/exchange.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/report.h"
#include "ps/server/row_clock.h"
#include "ps/server/steps.h"
#include "ps/server/tables.h"
#include "ps/server/training.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The training that a request is for; see ps.proto.
struct View {
  uint64_t run = 0;
  uint64_t epoch = 0;
};

//   state     event        guard                     action       next
//   --------  -----------  ------------------------  -----------  --------
//   empty     define       a restore has all values  restore      serving
//   empty     define       otherwise                              defined
//   defined   initialize   all parts have values     answer       serving
//   defined,  define       of another run, or cut;   restore      serving or
//    serving               no push has counted                    defined
//   any       drain                                  end waits    draining
//
// In `defined` workers may join; pulls and pushes are refused. Other events
// leave the state as it is. Exchange knows whether a training that is
// served has failed.
//
// Thread-safe. No call blocks, except for a lock, for a restore and to check
// gradients: waits end with a callback. Each callback runs exactly once,
// without locks, on the server's own thread or within any thread's call.
class Server {
 public:
  struct Options : Exchange::Options {
    Tables::Options tables;
    // Null: nothing is restored.
    std::shared_ptr<RestoreSource> restore;
  };

  using Definition = ServerDefinition;
  using Training = ps::Training;
  using Joined = Exchange::Joined;
  using PushVerdict = Exchange::PushVerdict;
  using PullSpec = Exchange::PullSpec;
  using Pulled = Exchange::Pulled;
  using PushCallback = Exchange::PushCallback;
  using PullCallback = Exchange::PullCallback;
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
  // Calls Drain() and joins the threads. No other call may run now or later.
  ~Server();

  // Returns the cut that all servers are to restore, and the run that they are
  // to have: `run`, unless there is one. The first answer stays, until a
  // Define() with it fails here. Blocks while the checkpoint is read.
  absl::StatusOr<Choice> ChooseCut(uint64_t run);
  // See ps.proto. Returns FAILED_PRECONDITION, with the difference, if the
  // server has another model, or other servers, or cannot begin with the cut;
  // INVALID_ARGUMENT for a model that cannot be; and what a restore returns.
  absl::StatusOr<Defined> Define(const Definition& definition);

  // Returns an error, as ps.proto says, unless a request of `view` is for what
  // this server serves.
  absl::Status CheckView(const View& view) const;
  // Returns the clocks of all ranks, less the pushes that are not applied; what
  // pulls return while there are no values, or no more.
  absl::StatusOr<std::vector<RankClock>> AppliedClocks() const;
  // Returns what is served; null before Define().
  std::shared_ptr<const Training> training() const;
  bool has_values() const;
  // Returns the cut that was restored; nullopt: none.
  absl::optional<CutId> restored() const;
  // Returns true once a push has counted.
  bool has_begun() const { return push_counts().counted > 0; }
  // Calls back once there are values, with OK, or when the server drains; with
  // RESOURCE_EXHAUSTED if too many wait. Returns a ticket for Cancel().
  uint64_t AwaitValues(ReadyCallback callback);

  // Makes `worker` a member, in place of an older incarnation of its rank.
  absl::StatusOr<Joined> Join(const View& view, const WorkerId& worker);
  // Renews the lease; makes it a member first, if its rank is free.
  absl::Status Heartbeat(uint64_t run, const WorkerId& worker);
  // End the membership. Lost() also counts the worker as lost, and logs that.
  // Both ignore a worker that is no member.
  void Leave(const WorkerId& worker);
  void Lost(const WorkerId& worker);

  // Takes first values of parts. Returns false if there were values already;
  // then nothing changes. Returns FAILED_PRECONDITION unless the rank is 0.
  absl::StatusOr<bool> Initialize(const View& view, const WorkerId& worker,
                                  const tensor::Bundle& values);

  // Hand over a push and ask for a pull, as ps.proto says. Both return a ticket
  // for Cancel(), and may call back before they return. `will_help`: the caller
  // calls Help() as soon as the push's answer is on its way.
  uint64_t Push(const View& view, const WorkerId& worker, uint64_t clock,
                const tensor::Bundle& gradients, PushCallback callback,
                bool will_help = false);
  uint64_t Pull(const View& view, const PullSpec& spec, PullCallback callback);
  // See Steps::Help().
  void Help();
  // Ends the wait with CANCELLED, if it has not ended.
  void Cancel(uint64_t ticket);

  // Applies no step that has not begun, so that a cut of all servers can be
  // chosen: until TakeSnapshot(), ReleaseSteps(), or Exchange::kHoldLimit is
  // over. Ends the snapshots that are under way.
  absl::StatusOr<HeldSteps> HoldSteps(const View& view);
  void ReleaseSteps();
  // Returns the values as they are at `cut`, or, without one, at the first that
  // this server can reach. Applies the pushes that are in, and none that is
  // out. Blocks until they are applied; `on_wait` is told a ticket for
  // Cancel(), before that. Returns OUT_OF_RANGE if the server is past the cut,
  // DEADLINE_EXCEEDED after `timeout`, ABORTED if steps are held anew, and
  // RESOURCE_EXHAUSTED or FAILED_PRECONDITION as sparse::Table::BeginSnapshot()
  // does.
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      absl::optional<CutPoint> cut, const SparseSnapshotOptions& options,
      absl::Duration timeout,
      const std::function<void(uint64_t ticket)>& on_wait = nullptr);

  // Ends every wait, and refuses what comes later. Still finishes a step that
  // is being applied. May be called again.
  void Drain();

  ServerReport report() const;
  // The report's, at less cost.
  PushCounts push_counts() const;

 private:
  enum class State { kEmpty, kDefined, kServing, kDraining };
  struct PendingReady {
    ReadyCallback callback;
    absl::Time deadline;  // by SteadyNow()
  };
  using Due = std::vector<std::function<void()>>;
  using ExchangePtr = std::shared_ptr<Exchange>;

  absl::StatusOr<Defined> DefineAnew(const Definition& definition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(define_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckCut(const absl::optional<CutId>& cut) const;
  absl::Status Begin(std::shared_ptr<Training> training,
                     const absl::optional<CutId>& cut,
                     const RestoredModel& restored) ABSL_LOCKS_EXCLUDED(mu_);
  void BecomeReadyLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndReadyLocked(const absl::Status& status, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireReady() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckRunLocked(uint64_t run) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckViewLocked(const View& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckHasValuesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns who serves it.
  absl::StatusOr<ExchangePtr> Serving(const View& view) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns null before Define().
  ExchangePtr exchange() const ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const RowClock clock_;
  std::atomic<uint64_t> next_ticket_{1};

  absl::Mutex define_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // one Define() at a time
  absl::optional<Choice> choice_ ABSL_GUARDED_BY(define_mu_);
  mutable absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kEmpty;
  std::shared_ptr<Training> training_ ABSL_GUARDED_BY(mu_);
  ExchangePtr exchange_ ABSL_GUARDED_BY(mu_);
  absl::optional<CutId> cut_ ABSL_GUARDED_BY(mu_);  // restored
  // In order of their deadlines: all may wait for as long.
  std::map<uint64_t, PendingReady> pending_ready_ ABSL_GUARDED_BY(mu_);
  Steps steps_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_SERVER_H_
