// Lets the tasks of a team find each other: rank 0 collects the other ranks,
// and invites them to a group on their host.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_MEETING_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_MEETING_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace tensorflow {

// Limits the time from the first rank's call to the last rank's call. By then,
// TensorFlow has already waited for all tasks.
constexpr absl::Duration kMeetingTime = absl::Seconds(10);

// A rank that asks rank 0 of its team for an invitation.
struct Joiner {
  std::string team;  // equal on all ranks of a team, and on no others
  int rank = 0;
  std::string host;  // HostOfProcess(): equal if processes can share memory
};

// Returns this process as a joiner.
Joiner JoinerHere(std::string team, int rank);

// Converts a joiner to the metadata of a call, and back. ParseJoiner() returns
// INVALID_ARGUMENT for text of another release, and for an invalid rank.
std::string ToText(const Joiner& joiner);
absl::StatusOr<Joiner> ParseJoiner(const std::string& text);

// The meetings of all teams whose rank 0 is this task. Thread-safe.
class TeamMeetings {
 public:
  // Receives an invitation for Join(), or the reason why there is no group.
  using Answer =
      std::function<void(const absl::StatusOr<std::string>& invitation)>;

  // Registers another rank. Calls `answer` once Lead() has collected all ranks,
  // or has failed.
  void Add(const Joiner& joiner, const Answer& answer);

  // Collects the `ranks` - 1 other ranks of a team, and forms their group. Call
  // once for each team. Returns an error if they do not come within
  // kMeetingTime, if they cannot share memory, or if Refuse() is called. The
  // other ranks get the same error. Also returns an error if another rank fails
  // in AcceptInvitation().
  absl::StatusOr<std::unique_ptr<collectives::Group>> Lead(
      const std::string& team, int ranks);

  // Ends the present and later Lead() of a team with an error.
  void Refuse(const std::string& team, const absl::Status& why);

 private:
  struct Guest {
    std::string host;
    Answer answer;
  };
  struct Meeting {
    absl::Status refused;  // an error after Refuse(), or after Lead()
    std::map<int, Guest> guests;
  };

  // Returns the guests, and accepts no later ones.
  absl::StatusOr<std::map<int, Guest>> Collect(const std::string& team,
                                               int ranks);
  absl::Status Check(const Meeting& meeting, int ranks, absl::Time until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  std::condition_variable_any changed_;
  std::map<std::string, Meeting> meetings_ ABSL_GUARDED_BY(mu_);
};

// Accepts an invitation. Returns once all ranks have joined. Returns an error
// if a rank fails, or does not come within kMeetingTime.
absl::StatusOr<std::unique_ptr<collectives::Group>> AcceptInvitation(
    const std::string& invitation, int rank, int ranks);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_MEETING_H_
