// One parameter server: what it holds, who may push, and what waits. Knows no
// gRPC; ps/service makes it a service.

#ifndef PENSTOCK_PS_SERVER_SERVER_H_
#define PENSTOCK_PS_SERVER_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/server/held_gradients.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/report.h"
#include "ps/server/tables.h"
#include "tensor_service/tensor.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// What a request was made by; see ps.proto.
struct View {
  uint64_t run = 0;
  uint64_t epoch = 0;
};

//   state     event        guard                     action       next
//   --------  -----------  ------------------------  -----------  --------
//   empty     define       a restore has all values  restore      serving
//   empty     define       otherwise                              defined
//   defined   initialize   all parts have values     answer       serving
//   serving   apply        fails until max_wait      end waits    failed
//   any       drain                                  end waits    draining
//
// In `defined` workers may join; pulls and pushes are refused. What is not
// there leaves the state as it is.
//
// Thread-safe. No call blocks, except for a lock, for a restore and to check
// gradients: waits end with a callback. Each callback runs exactly once,
// without locks, on the server's own thread or within any thread's call.
class Server {
 public:
  struct Options {
    Membership::Options membership;  // but for what a checkpoint has
    Tables::Options tables;
    // Ends a wait that nothing else ends.
    absl::Duration max_wait = absl::Minutes(10);
    // Bounds the gradients that are taken and not applied.
    size_t max_held_bytes = size_t{4} << 30;
    // Bounds the GetModel() calls that wait, and the pulls: one of each rank,
    // and as many of readers.
    size_t max_waiting_calls = 2 * size_t{kMaxRanks};
    // Bounds what those pulls have asked for: ids, above all.
    size_t max_waiting_bytes = size_t{4} << 30;
    // Puts the values of a checkpoint into the tables, of the newest if the
    // step is 0. Returns NOT_FOUND if there is none: then the chief's values
    // are waited for. Empty: nothing is restored.
    std::function<absl::StatusOr<RestoredModel>(uint64_t step, Tables* tables)>
        restore;
    // Called with one printable line for each join, death and refusal, on any
    // thread, and as often as peers cause them: it has to bound what it writes.
    // If empty, the lines go to Penstock's log, which does.
    std::function<void(const std::string&)> log;
  };

  struct Definition {
    Model model;
    std::vector<std::string> servers;
    uint32_t server = 0;
    uint64_t run = 0;
    uint64_t restore_step = 0;  // 0: the newest good one
  };
  struct Defined {
    bool taken = false;
    uint64_t run = 0;
    bool wants_values = false;
    uint64_t restored_step = 0;
  };
  struct Joined {
    absl::Duration lease;
    uint64_t clock = 0;
  };
  enum class PushVerdict {
    kCounted,
    kDuplicate,  // this push of the worker, or a later one, has counted
    kLate,       // the step has ended without it
  };
  struct PullSpec {
    absl::optional<WorkerId> worker;
    uint64_t clock = 0;
    bool all_parts = false;
    std::vector<std::string> parts;
    tensor::Bundle ids;
    absl::optional<tensor::DType> dtype;
  };
  struct Pulled {
    tensor::Bundle bundle;
    uint64_t clock = 0;
  };
  using PushCallback = std::function<void(absl::StatusOr<PushVerdict>)>;
  using PullCallback = std::function<void(absl::StatusOr<Pulled>)>;
  using ReadyCallback = std::function<void(absl::Status)>;
  // What a server was defined as; immutable.
  struct Training {
    uint64_t run = 0;
    uint32_t server = 0;
    std::shared_ptr<Tables> tables;
  };

  static constexpr absl::Duration kHelpLimit = absl::Milliseconds(10);

  explicit Server(const Options& options);
  // Calls Drain() and joins the threads. No other call may run now or later.
  ~Server();

  // See ps.proto. Returns FAILED_PRECONDITION, with the difference, if the
  // server has another model, or other servers; INVALID_ARGUMENT for a model
  // that cannot be; and what a restore returns.
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
  // Applies a step, if one waits that is small: to wake the server's thread for
  // it takes longer, and on few cores takes one from who waits for the answer.
  // Steps that nobody helps with the thread applies, after kHelpLimit at most.
  void Help();
  // Ends the wait with CANCELLED, if it has not ended.
  void Cancel(uint64_t ticket);

  // Returns the values as they are between two steps; those of synchronous
  // tables as `version` steps have made them, if it is given. Blocks until they
  // are there; `on_wait` is told a ticket for Cancel(), before that. Returns
  // OUT_OF_RANGE if they have taken more steps already, DEADLINE_EXCEEDED after
  // `timeout`, and RESOURCE_EXHAUSTED or FAILED_PRECONDITION as
  // sparse::Table::BeginSnapshot() does.
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      absl::optional<uint64_t> version, const SparseSnapshotOptions& options,
      absl::Duration timeout,
      const std::function<void(uint64_t ticket)>& on_wait = nullptr);

  // Ends every wait, and refuses what comes later. Still finishes a step that
  // is being applied. May be called again.
  void Drain();

  ServerReport report() const;
  // The report's, at less cost.
  PushCounts push_counts() const;

 private:
  enum class State { kEmpty, kDefined, kServing, kFailed, kDraining };
  struct PendingPush {
    WorkerId worker;
    PushId id;
    Gradients gradients;
    size_t held_bytes = 0;
    PushCallback callback;
    bool will_help = false;
  };
  struct PendingPull {
    absl::optional<WorkerId> worker;
    Selection selection;
    size_t bytes = 0;  // of the selection
    PullCallback callback;
  };
  struct PendingReady {
    ReadyCallback callback;
    absl::Time deadline;  // by SteadyNow(), as all times but the rows'
  };
  struct PendingSnapshot {
    absl::optional<uint64_t> version;
    SparseSnapshotOptions options;
    std::function<void(absl::StatusOr<ModelSnapshot>)> callback;
  };
  // Callbacks to run once the lock is free.
  using Due = std::vector<std::function<void()>>;
  using Outcome = Coordinator::Outcome;

  absl::StatusOr<std::shared_ptr<Training>> MakeTraining(
      const Definition& definition) const;
  absl::Status CheckSame(const Definition& definition) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckHeldBytes(const Tables& tables) const;
  absl::Status Begin(std::shared_ptr<Training> training,
                     const RestoredModel& restored) ABSL_LOCKS_EXCLUDED(mu_);
  void BecomeReadyLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status CheckViewLocked(const View& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckServingLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::shared_ptr<Training>> ServingLocked(
      const View& view) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::optional<PushVerdict> VerdictOnRepeatedLocked(const WorkerId& worker,
                                                      uint64_t clock) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether gradients of so many bytes may be held, too.
  absl::Status CheckRoomLocked(size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakePushLocked(uint64_t ticket, PendingPush* push, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefusePush(const PendingPush& push, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Does what follows from an event. `will_help`: whose caller calls Help().
  void HandleLocked(Outcome outcome, Due* due, bool will_help = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerPushLocked(PendingPush push, const Coordinator::Answer& answer,
                        Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  PendingPull TakePullLocked(std::map<uint64_t, PendingPull>::iterator pull)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Refuses the pull if it waits and too many do, or have asked for too much.
  void BoundPullsLocked(uint64_t ticket, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerPullLocked(PendingPull pull, const Coordinator::Answer& answer,
                        Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StatusOfLocked(const absl::optional<WorkerId>& worker,
                              absl::string_view call,
                              const Coordinator::Answer& answer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Run(const Due& due);

  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWorkLocked(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time NextDeadlineLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time NextWakeLocked(absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeThreadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool HasSmallSteps(const Tables& tables);
  bool CanBeHelpedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool BeginHelp() ABSL_LOCKS_EXCLUDED(mu_);
  void EndHelp() ABSL_LOCKS_EXCLUDED(mu_);
  enum class NoMemory { kWait, kLeaveToThread };
  void ApplyNext(NoMemory no_memory) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ApplyWhenThereIsMemory(const Coordinator::Apply& apply,
                                      absl::Span<Gradients* const> pushes,
                                      Tables* tables) ABSL_LOCKS_EXCLUDED(mu_);
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);
  void Maintain(Tables* tables) ABSL_LOCKS_EXCLUDED(mu_);
  void TakeSnapshots() ABSL_LOCKS_EXCLUDED(mu_);
  static absl::StatusOr<ModelSnapshot> Snapshot(
      const PendingSnapshot& wanted, Tables& tables,
      absl::optional<uint64_t> version, const std::vector<RankClock>& clocks);
  void EndSnapshotsLocked(const absl::Status& why, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsDueLocked(const PendingSnapshot& snapshot) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::optional<uint64_t> VersionLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The time of rows: the system's as it was at the start, and then steady.
  absl::Time RowNow() const;
  void Log(const std::vector<std::string>& notes) const;

  const Options options_;
  const absl::Time row_epoch_;

  absl::Mutex define_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // one Define() at a time
  mutable absl::Mutex mu_;
  base::SteadyCondVar wake_thread_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kEmpty;
  std::shared_ptr<Training> training_ ABSL_GUARDED_BY(mu_);
  uint64_t restored_step_ ABSL_GUARDED_BY(mu_) = 0;
  absl::optional<Coordinator> coordinator_ ABSL_GUARDED_BY(mu_);
  HeldGradients held_ ABSL_GUARDED_BY(mu_);
  // The last push of each rank that counted: who repeats it has to know that it
  // did, and not only that its step is over.
  std::map<uint32_t, RankClock> last_counted_ ABSL_GUARDED_BY(mu_);
  size_t pending_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of pending_pushes_
  std::deque<Coordinator::Apply> applies_ ABSL_GUARDED_BY(mu_);
  // Until then the thread leaves what is in there to who helps.
  absl::Time help_ends_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // A thread, its own or one that helps, works on the tables as the only one.
  bool is_applying_ ABSL_GUARDED_BY(mu_) = false;
  bool has_small_steps_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint64_t, PendingPush> pending_pushes_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PendingPull> pending_pulls_ ABSL_GUARDED_BY(mu_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of pending_pulls_
  // In order of their deadlines: all may wait for as long.
  std::map<uint64_t, PendingReady> pending_ready_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PendingSnapshot> pending_snapshots_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 1;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // why training has ended
  PushCounts counts_ ABSL_GUARDED_BY(mu_);
  absl::Time next_maintenance_ ABSL_GUARDED_BY(mu_);
  // Until when the thread waits, unless it is woken.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Applies steps, takes snapshots and watches deadlines.
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_SERVER_H_
