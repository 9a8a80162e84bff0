#include "frameworks/torch/rendezvous.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "transport/base/host_id.h"

namespace penstock {
namespace pytorch {
namespace {

using collectives::Group;
using collectives::HostGroup;
using collectives::HostGroupOptions;
using collectives::Meeting;

// Rank 0 writes here the reason why there is no group, or kInvitation and the
// invitation.
constexpr char kVerdict[] = "verdict";
constexpr char kInvitation[] = "invitation ";

// Part of another board: the keys of one group.
class Round final : public Board {
 public:
  Round(Board* board, int64_t number) : board_(board), number_(number) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    return board_->Set(KeyOf(key), value);
  }
  absl::StatusOr<int64_t> Count(const std::string& key) override {
    return board_->Count(KeyOf(key));
  }
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override {
    return board_->Get(KeyOf(key), timeout);
  }

 private:
  std::string KeyOf(const std::string& key) const {
    return absl::StrCat(key, ", round ", number_);
  }

  Board* const board_;
  const int64_t number_;
};

std::string KeyOf(int rank) { return absl::StrCat("rank ", rank); }

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string NetworkNamespace() {
  char text[64];
  const ssize_t size = readlink("/proc/self/ns/net", text, sizeof text);
  return size > 0 ? std::string(text, size) : std::string();
}

// Returns the place of this process, as lines: the kernel, the network
// namespace and the user, all of which must be equal, and the host's name.
std::string OwnPlace() {
  return absl::StrCat(base::HostId(), "\n", NetworkNamespace(), "\n", geteuid(),
                      "\n", HostName());
}

// Returns the reason why two processes cannot share memory, or nothing.
std::string Difference(const std::string& one, const std::string& other) {
  const std::vector<std::string> a = absl::StrSplit(one, '\n');
  const std::vector<std::string> b = absl::StrSplit(other, '\n');
  if (a.size() != 4 || b.size() != 4) {
    return "describes itself in a way of another version of Penstock";
  }
  if (a[0] != b[0] || a[0].empty()) {
    return absl::StrCat("is on another host (", b[3], ", and rank 0 is on ",
                        a[3],
                        "). Groups across hosts are not supported yet: "
                        "use gloo for them");
  }
  if (a[1] != b[1]) {
    return "is in another network namespace: start all ranks in one container, "
           "or with the host's network";
  }
  if (a[2] != b[2]) {
    return absl::StrCat("belongs to user ", b[2], ", and rank 0 to user ",
                        a[2]);
  }
  return "";
}

// Waits for the places of all ranks.
absl::Status CheckPlaces(Board* board, const HostGroupOptions& options) {
  const std::string own = OwnPlace();
  for (int rank = 1; rank < options.ranks; ++rank) {
    const auto place = board->Get(KeyOf(rank), options.timeout);
    if (!place.ok()) {
      return absl::Status(place.status().code(),
                          absl::StrCat("rank ", rank, " has not come: ",
                                       place.status().message()));
    }
    const std::string difference = Difference(own, *place);
    if (difference.empty()) continue;
    return absl::UnavailableError(absl::StrCat("rank ", rank, " ", difference));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Group>> Lead(Board* board,
                                            const HostGroupOptions& options) {
  absl::Status checked = CheckPlaces(board, options);
  absl::StatusOr<Meeting> meeting =
      checked.ok() ? Meeting::Open() : absl::StatusOr<Meeting>(checked);
  absl::Status told = board->Set(
      kVerdict, meeting.ok() ? kInvitation + meeting->invitation()
                             : std::string(meeting.status().message()));
  if (!meeting.ok()) return meeting.status();
  if (!told.ok()) return told;
  return HostGroup::Lead(*std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Group>> Join(Board* board, int rank,
                                            const HostGroupOptions& options) {
  absl::Status told = board->Set(KeyOf(rank), OwnPlace());
  if (!told.ok()) return told;
  const auto verdict = board->Get(kVerdict, options.timeout);
  if (!verdict.ok()) return verdict.status();
  absl::string_view invitation = *verdict;
  if (!absl::ConsumePrefix(&invitation, kInvitation)) {
    return absl::UnavailableError(*verdict);
  }
  return HostGroup::Join(invitation, rank, options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> FormGroup(
    Board* board, int rank, const HostGroupOptions& options) {
  if (options.ranks < 1 || options.ranks > collectives::kMaxHostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group has 1 to ", collectives::kMaxHostRanks,
                     " ranks on one host, not ", options.ranks));
  }
  if (rank < 0 || rank >= options.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank is ", rank, ", expected 0 to ", options.ranks - 1));
  }
  // Another group has perhaps left its keys on the board.
  const auto number = board->Count(absl::StrCat("groups of rank ", rank));
  if (!number.ok()) return number.status();
  Round round(board, *number);
  return rank == 0 ? Lead(&round, options) : Join(&round, rank, options);
}

}  // namespace pytorch
}  // namespace penstock
