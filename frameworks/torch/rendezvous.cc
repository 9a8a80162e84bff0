#include "frameworks/torch/rendezvous.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/hierarchical/group.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "frameworks/torch/place.h"
#include "penstock/options.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace pytorch {
namespace {

using collectives::Group;
using collectives::HierarchicalGroup;
using collectives::HostGroup;
using collectives::HostGroupOptions;
using collectives::Listener;
using collectives::Meeting;

// The key under which rank 0 writes how the group is formed, or the reason why
// there is no group. The first word says which of the two follows.
constexpr char kVerdict[] = "verdict";
// The first word of a verdict for ranks of one host. The bytes of each rank's
// pool, a space and the invitation to a HostGroup follow.
constexpr char kInvitation[] = "invitation ";
// The first word of a verdict for several hosts. The ranks' addresses follow,
// one per line. Each rank then opens a listener at its address.
constexpr char kAddresses[] = "addresses ";
// The key under which rank 0 writes the addresses of all ranks' listeners, one
// per line. If there is no group, rank 0 writes the reason.
constexpr char kListeners[] = "listeners";
constexpr char kAll[] = "all ";

constexpr char kLoopback[] = "127.0.0.1";

// The part of another board that holds the keys of one group.
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
std::string ListenerKeyOf(int rank) {
  return absl::StrCat("listener of rank ", rank);
}

absl::Status OfRank(int rank, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("rank ", rank, " ", status.message()));
}

// Convert an entry of the board to and from text: a word and its text, or an
// error.
std::string Pack(const char* word, const absl::StatusOr<std::string>& text) {
  return text.ok() ? word + *text : std::string(text.status().message());
}
absl::StatusOr<std::string> Unpack(const char* word, absl::string_view packed) {
  if (absl::ConsumePrefix(&packed, word)) return std::string(packed);
  return absl::UnavailableError(packed);
}

FormedGroup OnHost(std::unique_ptr<HostGroup> group) {
  std::shared_ptr<collectives::Pool> pool =
      group->pool()->bytes() > 0 ? group->pool() : nullptr;
  return {std::move(group), kLoopback, std::move(pool)};
}

// One attempt of the ranks to form a group, by one round of a board.
class Forming {
 public:
  Forming(Board* board, const Place& place, int rank,
          const HostGroupOptions& options)
      : board_(board), place_(place), rank_(rank), options_(options) {}

  absl::StatusOr<FormedGroup> Lead();
  absl::StatusOr<FormedGroup> Join();

 private:
  // Waits for the places of all ranks.
  absl::StatusOr<std::vector<Place>> AwaitPlaces();
  absl::StatusOr<FormedGroup> LeadHost();
  absl::StatusOr<FormedGroup> LeadHosts(const std::vector<Place>& places);
  absl::StatusOr<FormedGroup> JoinHosts(const std::vector<std::string>& all);
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address);
  // Waits for the listeners of all ranks.
  absl::StatusOr<std::string> AwaitListeners(const std::string& own);
  absl::StatusOr<FormedGroup> Meet(std::unique_ptr<Listener> listener,
                                   const std::string& address,
                                   const std::string& listeners);
  // Tells all other ranks why there is no group.
  absl::Status Refuse(const char* key, const absl::Status& reason);

  Board* const board_;
  const Place& place_;
  const int rank_;
  const HostGroupOptions& options_;
};

absl::Status Forming::Refuse(const char* key, const absl::Status& reason) {
  absl::Status told = board_->Set(key, std::string(reason.message()));
  return told.ok() ? reason : told;
}

absl::StatusOr<std::vector<Place>> Forming::AwaitPlaces() {
  std::vector<Place> places = {place_};
  for (int rank = 1; rank < options_.ranks; ++rank) {
    const auto text = board_->Get(KeyOf(rank), options_.timeout);
    if (!text.ok()) {
      return absl::Status(text.status().code(),
                          absl::StrCat("rank ", rank, " has not come: ",
                                       text.status().message()));
    }
    absl::StatusOr<Place> place = ParsePlace(*text);
    if (!place.ok()) return OfRank(rank, place.status());
    places.push_back(*std::move(place));
  }
  return places;
}

absl::StatusOr<FormedGroup> Forming::Lead() {
  const absl::StatusOr<std::vector<Place>> places = AwaitPlaces();
  if (!places.ok()) return Refuse(kVerdict, places.status());
  return AreOnOneHost(*places) ? LeadHost() : LeadHosts(*places);
}

absl::StatusOr<FormedGroup> Forming::LeadHost() {
  if (options_.ranks > collectives::kMaxHostRanks) {
    return Refuse(kVerdict,
                  absl::InvalidArgumentError(absl::StrCat(
                      "a group has up to ", collectives::kMaxHostRanks,
                      " ranks on one host, not ", options_.ranks)));
  }
  absl::StatusOr<Meeting> meeting = Meeting::Open();
  if (!meeting.ok()) return Refuse(kVerdict, meeting.status());
  absl::Status told =
      board_->Set(kVerdict, absl::StrCat(kInvitation, options_.pool_bytes, " ",
                                         meeting->invitation()));
  if (!told.ok()) return told;
  auto group = HostGroup::Lead(*std::move(meeting), options_);
  if (!group.ok()) return group.status();
  return OnHost(*std::move(group));
}

absl::StatusOr<FormedGroup> Forming::LeadHosts(
    const std::vector<Place>& places) {
  const auto addresses = AddressesOf(places);
  if (!addresses.ok()) return Refuse(kVerdict, addresses.status());
  absl::Status told =
      board_->Set(kVerdict, kAddresses + absl::StrJoin(*addresses, "\n"));
  if (!told.ok()) return told;
  const std::string& address = addresses->front();
  absl::StatusOr<std::unique_ptr<Listener>> listener = Listen(address);
  if (!listener.ok()) {
    return Refuse(kListeners, OfRank(0, listener.status()));
  }
  const auto listeners = AwaitListeners((*listener)->address());
  told = board_->Set(kListeners, Pack(kAll, listeners));
  if (!listeners.ok()) return listeners.status();
  if (!told.ok()) return told;
  return Meet(*std::move(listener), address, *listeners);
}

absl::StatusOr<std::string> Forming::AwaitListeners(const std::string& own) {
  std::string listeners = own;
  for (int rank = 1; rank < options_.ranks; ++rank) {
    auto packed = board_->Get(ListenerKeyOf(rank), options_.timeout);
    if (!packed.ok()) return OfRank(rank, packed.status());
    auto listener = Unpack(kAll, *packed);
    if (!listener.ok()) return OfRank(rank, listener.status());
    absl::StrAppend(&listeners, "\n", *listener);
  }
  return listeners;
}

absl::StatusOr<FormedGroup> Forming::Join() {
  absl::Status told = board_->Set(KeyOf(rank_), ToText(place_));
  if (!told.ok()) return told;
  const auto verdict = board_->Get(kVerdict, options_.timeout);
  if (!verdict.ok()) return verdict.status();
  absl::string_view text = *verdict;
  if (absl::ConsumePrefix(&text, kAddresses)) {
    return JoinHosts(absl::StrSplit(text, '\n'));
  }
  if (!absl::ConsumePrefix(&text, kInvitation)) {
    return absl::UnavailableError(text);
  }
  const std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  HostGroupOptions options = options_;
  if (!absl::SimpleAtoi(words.first, &options.pool_bytes)) {
    return absl::InvalidArgumentError("rank 0 has another version of Penstock");
  }
  auto group = HostGroup::Join(words.second, rank_, options);
  if (!group.ok()) return group.status();
  return OnHost(*std::move(group));
}

absl::StatusOr<FormedGroup> Forming::JoinHosts(
    const std::vector<std::string>& all) {
  if (all.size() != static_cast<size_t>(options_.ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank 0 expects ", all.size(), " ranks, and rank ", rank_,
                     " expects ", options_.ranks));
  }
  absl::StatusOr<std::unique_ptr<Listener>> listener = Listen(all[rank_]);
  const absl::StatusOr<std::string> address =
      listener.ok() ? absl::StatusOr<std::string>((*listener)->address())
                    : absl::StatusOr<std::string>(listener.status());
  absl::Status told = board_->Set(ListenerKeyOf(rank_), Pack(kAll, address));
  if (!listener.ok()) return listener.status();
  if (!told.ok()) return told;
  const auto packed = board_->Get(kListeners, options_.timeout);
  if (!packed.ok()) return packed.status();
  const auto listeners = Unpack(kAll, *packed);
  if (!listeners.ok()) return listeners.status();
  return Meet(*std::move(listener), all[rank_], *listeners);
}

absl::StatusOr<std::unique_ptr<Listener>> Forming::Listen(
    const std::string& address) {
  absl::StatusOr<Settings> settings = ResolveSettings(Options());
  if (!settings.ok()) return settings.status();
  collectives::ListenerOptions options;
  options.host = address;
  options.neighbourhood = place_.host;
  options.settings = *std::move(settings);
  absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open(options);
  if (listener.ok()) return listener;
  return absl::Status(listener.status().code(),
                      absl::StrCat("cannot listen at ", address, ": ",
                                   listener.status().message()));
}

absl::StatusOr<FormedGroup> Forming::Meet(std::unique_ptr<Listener> listener,
                                          const std::string& address,
                                          const std::string& listeners) {
  collectives::NetGroupOptions options;
  options.rank = rank_;
  options.forming_timeout = options_.meeting_timeout;
  options.timeout = options_.timeout;
  auto group = HierarchicalGroup::Form(
      std::move(listener), absl::StrSplit(listeners, '\n'), options);
  if (!group.ok()) return group.status();
  return FormedGroup{*std::move(group), address, nullptr};
}

}  // namespace

absl::StatusOr<FormedGroup> FormGroup(Board* board, const Place& place,
                                      int rank,
                                      const HostGroupOptions& options) {
  if (options.ranks < 1 || options.ranks > collectives::kMaxNetRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group has 1 to ", collectives::kMaxNetRanks,
                     " ranks, not ", options.ranks));
  }
  if (rank < 0 || rank >= options.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank is ", rank, ", expected 0 to ", options.ranks - 1));
  }
  // Numbers the groups, because an earlier group may have left its keys on the
  // board.
  const auto number = board->Count(absl::StrCat("groups of rank ", rank));
  if (!number.ok()) return number.status();
  Round round(board, *number);
  Forming forming(&round, place, rank, options);
  return rank == 0 ? forming.Lead() : forming.Join();
}

}  // namespace pytorch
}  // namespace penstock
