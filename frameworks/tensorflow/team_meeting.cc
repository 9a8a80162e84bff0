#include "frameworks/tensorflow/team_meeting.h"

#include <chrono>
#include <future>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "collectives/net/address.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace tensorflow {
namespace {

using collectives::HostGroup;
using collectives::HostGroupOptions;

// The first word of a joiner's text. Changes with the layout.
constexpr char kLayout[] = "team1";

HostGroupOptions OptionsOf(int ranks) {
  HostGroupOptions options;
  options.ranks = ranks;
  options.meeting_timeout = kMeetingTime;
  // Uses a very long timeout, because TensorFlow has its own timeouts, and its
  // tasks may pause for a long time.
  options.timeout = absl::Hours(24 * 365);
  // Waits as long for a stopped task as the data plane does.
  options.silence = absl::Seconds(90);
  return options;
}

// Returns the group once all ranks have it. Leaves the group after an error,
// which the other ranks notice here.
absl::StatusOr<std::unique_ptr<collectives::Group>> OnceAllHave(
    absl::StatusOr<std::unique_ptr<HostGroup>> formed) {
  if (!formed.ok()) return formed.status();
  std::unique_ptr<HostGroup> group = *std::move(formed);
  std::promise<void> met;
  bool is_late = false;
  std::thread guard;
  try {
    guard = std::thread([&group, &is_late, met = met.get_future()] {
      is_late = met.wait_for(absl::ToChronoMilliseconds(kMeetingTime)) !=
                std::future_status::ready;
      if (is_late) group->Abort();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for a meeting: ", error.what()));
  }
  const absl::Status status = group->Barrier();
  met.set_value();
  guard.join();
  if (is_late) return absl::DeadlineExceededError("a rank has not joined");
  if (!status.ok()) return status;
  return std::unique_ptr<collectives::Group>(std::move(group));
}

}  // namespace

Joiner JoinerHere(std::string team, int rank) {
  return {std::move(team), rank, collectives::HostOfProcess()};
}

std::string ToText(const Joiner& joiner) {
  return absl::StrCat(kLayout, "\n", joiner.rank, "\n", joiner.host, "\n",
                      joiner.team);
}

absl::StatusOr<Joiner> ParseJoiner(const std::string& text) {
  const std::vector<std::string> lines =
      absl::StrSplit(text, absl::MaxSplits('\n', 3));
  Joiner joiner;
  if (lines.size() != 4 || lines[0] != kLayout ||
      !absl::SimpleAtoi(lines[1], &joiner.rank)) {
    return absl::InvalidArgumentError(
        "the peer's penstock-tensorflow is of another release");
  }
  if (joiner.rank < 1 || joiner.rank >= collectives::kMaxHostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a joiner has the rank ", joiner.rank));
  }
  joiner.host = lines[2];
  joiner.team = lines[3];
  return joiner;
}

void TeamMeetings::Add(const Joiner& joiner, const Answer& answer) {
  absl::Status refused;
  {
    base::MutexLock lock(&mu_);
    Meeting& meeting = meetings_[joiner.team];
    refused = meeting.refused;
    if (refused.ok() && meeting.guests.count(joiner.rank) != 0) {
      refused = absl::FailedPreconditionError(
          absl::StrCat("rank ", joiner.rank, " has come twice"));
    }
    if (refused.ok()) {
      meeting.guests[joiner.rank] = {joiner.host, answer};
    }
  }
  changed_.notify_all();
  if (!refused.ok()) answer(refused);
}

void TeamMeetings::Refuse(const std::string& team, const absl::Status& why) {
  {
    base::MutexLock lock(&mu_);
    Meeting& meeting = meetings_[team];
    if (meeting.refused.ok()) meeting.refused = why;
  }
  changed_.notify_all();
}

// Returns UNAVAILABLE while ranks may still come.
absl::Status TeamMeetings::Check(const Meeting& meeting, int ranks,
                                 absl::Time until) {
  if (!meeting.refused.ok()) return meeting.refused;
  const std::string host = collectives::HostOfProcess();
  for (const auto& [rank, guest] : meeting.guests) {
    if (rank >= ranks) continue;
    if (host.empty() || guest.host != host) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " is on another host than rank 0"));
    }
  }
  for (int rank = 1; rank < ranks; ++rank) {
    if (meeting.guests.count(rank) != 0) continue;
    if (base::SteadyNow() < until) return absl::UnavailableError("");
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", rank, " has not come"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<int, TeamMeetings::Guest>> TeamMeetings::Collect(
    const std::string& team, int ranks) {
  const absl::Time until = base::SteadyNow() + kMeetingTime;
  std::map<int, Guest> guests;
  absl::Status status;
  {
    base::MutexLock lock(&mu_);
    Meeting& meeting = meetings_[team];
    for (;;) {
      status = Check(meeting, ranks, until);
      if (!absl::IsUnavailable(status)) break;
      changed_.wait_for(mu_, std::chrono::milliseconds(100));
    }
    guests.swap(meeting.guests);
    meeting.refused = status.ok()
                          ? absl::FailedPreconditionError("the group exists")
                          : status;
  }
  while (!guests.empty() && guests.rbegin()->first >= ranks) {
    const auto last = std::prev(guests.end());
    last->second.answer(absl::InvalidArgumentError(absl::StrCat(
        "rank ", last->first, " of a team with ", ranks, " ranks")));
    guests.erase(last);
  }
  if (status.ok()) return guests;
  for (const auto& entry : guests) entry.second.answer(status);
  return status;
}

absl::StatusOr<std::unique_ptr<collectives::Group>> TeamMeetings::Lead(
    const std::string& team, int ranks) {
  const auto guests = Collect(team, ranks);
  if (!guests.ok()) return guests.status();
  auto meeting = collectives::Meeting::Open();
  const absl::StatusOr<std::string> invitation =
      meeting.ok() ? absl::StatusOr<std::string>(meeting->invitation())
                   : absl::StatusOr<std::string>(meeting.status());
  for (const auto& entry : *guests) entry.second.answer(invitation);
  if (!meeting.ok()) return meeting.status();
  return OnceAllHave(HostGroup::Lead(*std::move(meeting), OptionsOf(ranks)));
}

absl::StatusOr<std::unique_ptr<collectives::Group>> AcceptInvitation(
    const std::string& invitation, int rank, int ranks) {
  return OnceAllHave(HostGroup::Join(invitation, rank, OptionsOf(ranks)));
}

}  // namespace tensorflow
}  // namespace penstock
