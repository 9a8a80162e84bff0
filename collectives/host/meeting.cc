#include "collectives/host/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/host/introduction.h"
#include "collectives/host/member.h"
#include "transport/base/status_util.h"
#include "transport/base/steady_time.h"
#include "transport/base/token.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/peer_user.h"

namespace penstock::collectives {
namespace {

using Kind = Introduction::Kind;

// Limits the callers that have connected but not yet introduced themselves. If
// more come, the oldest are dropped.
constexpr size_t kMaxStrangers = 2 * kMaxHostRanks;
// The pause in accepting while this process has no free descriptor. The caller
// waits during the pause, and rank 0 does not spin.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(50);
// The pause between two attempts to connect while too many callers wait for
// rank 0.
constexpr absl::Duration kConnectPause = absl::Milliseconds(10);

// Returns true if a caller has hung up. Input counts as hanging up, because a
// caller must send nothing after its hello.
bool HungUp(int socket) {
  pollfd polled = {socket, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

absl::Status CheckSizes(int ranks, int rank, int least_rank,
                        const SegmentSizes& sizes) {
  const uint64_t slot_bytes = sizes.slot_bytes;
  if (ranks < 1 || ranks > kMaxHostRanks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a group of ", ranks, " ranks, expected 1 to ", kMaxHostRanks));
  }
  if (rank < least_rank || rank >= ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, ", expected ", least_rank, " to ", ranks - 1));
  }
  if (slot_bytes < kMinSlotBytes || slot_bytes > kMaxSlotBytes ||
      slot_bytes % kMinSlotBytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("slots of ", slot_bytes, " bytes, expected a multiple of ",
                     kMinSlotBytes, " up to ", kMaxSlotBytes));
  }
  if (sizes.pool_bytes > kMaxPoolBytes ||
      sizes.pool_bytes % kMinSlotBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pool of ", sizes.pool_bytes, " bytes, expected a multiple of ",
        kMinSlotBytes, " up to ", kMaxPoolBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckUser(int socket) {
  const auto user = fabric::shm::IdentifyPeer(socket);
  if (!user.ok()) return user.status();
  if (user->is_other) {
    return absl::PermissionDeniedError("a rank runs as another user");
  }
  return absl::OkStatus();
}

// The seats of the ranks at rank 0, while the ranks gather.
class Table {
 public:
  Table(int listener, const std::string& token, int ranks,
        const SegmentSizes& sizes, absl::Time deadline)
      : listener_(listener),
        token_(token),
        ranks_(ranks),
        sizes_(sizes),
        deadline_(deadline),
        guests_(ranks) {}

  absl::Status Fill() {
    while (DropDead() + 1 < ranks_) {
      if (base::SteadyNow() >= deadline_) return Missing();
      HearAndAccept();
    }
    return absl::OkStatus();
  }

  // Sends each rank the members of all other ranks. Returns the members as this
  // rank sees them.
  absl::StatusOr<Members> Introduce(std::unique_ptr<OwnMember> own) {
    for (int to = 1; to < ranks_; ++to) {
      for (int about = 0; about < ranks_; ++about) {
        if (about == to) continue;
        const Guest& guest = guests_[about];
        const absl::Status sent =
            Send(guests_[to].socket.get(), IntroductionOf(about),
                 about == 0 ? own->memory_fd() : guest.memory.get(),
                 about == 0 ? own->life_fd() : guest.life.get(), deadline_);
        if (!sent.ok()) return Explain(sent, to);
      }
    }
    Members members;
    members.own = std::move(own);
    members.peers.resize(ranks_);
    for (int rank = 1; rank < ranks_; ++rank) {
      auto peer = PeerMember::Map(std::move(guests_[rank].memory),
                                  std::move(guests_[rank].life), sizes_);
      if (!peer.ok()) return Explain(peer.status(), rank);
      members.peers[rank] = *std::move(peer);
    }
    return members;
  }

 private:
  struct Guest {
    base::UniqueFd socket;
    progress::ForeignFd memory;
    progress::ForeignFd life;
  };

  static absl::Status Explain(const absl::Status& status, int rank) {
    return absl::Status(status.code(),
                        absl::StrCat("rank ", rank, ": ", status.message()));
  }

  absl::Status Missing() const {
    std::vector<int> missing;
    for (int rank = 1; rank < ranks_; ++rank) {
      if (!guests_[rank].socket.valid()) missing.push_back(rank);
    }
    return absl::DeadlineExceededError(absl::StrCat(
        "these ranks did not come: ", absl::StrJoin(missing, ", ")));
  }

  Introduction IntroductionOf(int rank) const {
    Introduction introduction;
    introduction.kind = Kind::kMember;
    introduction.rank = static_cast<uint32_t>(rank);
    introduction.ranks = static_cast<uint32_t>(ranks_);
    introduction.sizes = sizes_;
    return introduction;
  }

  // Frees the seats of ranks that have died. Returns the number of remaining
  // ranks.
  int DropDead() {
    int present = 0;
    for (Guest& guest : guests_) {
      if (!guest.socket.valid()) continue;
      if (HungUp(guest.socket.get())) {
        guest = Guest();
      } else {
        ++present;
      }
    }
    return present;
  }

  // Waits for callers, and handles new callers and their messages.
  void HearAndAccept() {
    const absl::Time now = base::SteadyNow();
    const bool accepts = now >= accepts_from_;
    std::vector<pollfd> polled = {{accepts ? listener_ : -1, POLLIN, 0}};
    for (const auto& stranger : strangers_) {
      polled.push_back({stranger.get(), POLLIN, 0});
    }
    const absl::Time until = accepts ? deadline_ : accepts_from_;
    if (poll(polled.data(), polled.size(), PollMillis(until)) <= 0) return;
    std::vector<base::UniqueFd> silent;
    for (size_t i = 0; i < strangers_.size(); ++i) {
      if (polled[i + 1].revents == 0) {
        silent.push_back(std::move(strangers_[i]));
      } else {
        Hear(std::move(strangers_[i]));
      }
    }
    strangers_ = std::move(silent);
    if (polled[0].revents != 0) Accept();
  }

  void Accept() {
    base::UniqueFd socket(
        accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      const bool lacks_room = errno == EMFILE || errno == ENFILE ||
                              errno == ENOBUFS || errno == ENOMEM;
      if (lacks_room) accepts_from_ = base::SteadyNow() + kAcceptPause;
      return;
    }
    if (!CheckUser(socket.get()).ok()) return;
    // Drops the caller that has been silent for longest. A rank introduces
    // itself right after it has connected.
    if (strangers_.size() == kMaxStrangers) {
      strangers_.erase(strangers_.begin());
    }
    strangers_.push_back(std::move(socket));
  }

  void Hear(base::UniqueFd socket) {
    auto received = Receive(socket.get());
    if (!received.ok()) {
      Refuse(socket.get(), std::string(received.status().message()));
      return;
    }
    DropDead();
    const std::string reason = ReasonAgainst(received->introduction);
    if (!reason.empty()) {
      Refuse(socket.get(), reason);
      return;
    }
    Guest& guest = guests_[received->introduction.rank];
    guest.socket = std::move(socket);
    guest.memory = std::move(received->memory);
    guest.life = std::move(received->life);
  }

  std::string ReasonAgainst(const Introduction& hello) const {
    if (hello.kind != Kind::kHello || hello.token != token_) {
      return "this is another group: wrong token";
    }
    if (hello.ranks != static_cast<uint32_t>(ranks_)) {
      return absl::StrCat("rank ", hello.rank, " expects ", hello.ranks,
                          " ranks, rank 0 expects ", ranks_);
    }
    if (hello.rank < 1 || hello.rank >= static_cast<uint32_t>(ranks_)) {
      return absl::StrCat("there is no rank ", hello.rank, " to join");
    }
    if (hello.sizes.slot_bytes != sizes_.slot_bytes) {
      return absl::StrCat("rank ", hello.rank, " has slots of ",
                          hello.sizes.slot_bytes, " bytes, rank 0 of ",
                          sizes_.slot_bytes);
    }
    if (hello.sizes.pool_bytes != sizes_.pool_bytes) {
      return absl::StrCat("rank ", hello.rank, " has a pool of ",
                          hello.sizes.pool_bytes, " bytes, rank 0 of ",
                          sizes_.pool_bytes);
    }
    if (guests_[hello.rank].socket.valid()) {
      return absl::StrCat("rank ", hello.rank, " has come already");
    }
    return "";
  }

  void Refuse(int socket, const std::string& reason) {
    Introduction refusal;
    refusal.kind = Kind::kRefusal;
    refusal.text = reason;
    // Ignores a failure: a stranger that does not read its socket gets no
    // reason.
    (void)Send(socket, refusal, -1, -1, base::SteadyNow());
  }

  const int listener_;
  const std::string& token_;
  const int ranks_;
  const SegmentSizes sizes_;
  const absl::Time deadline_;
  std::vector<Guest> guests_;
  std::vector<base::UniqueFd> strangers_;
  absl::Time accepts_from_ = absl::InfinitePast();
};

absl::StatusOr<Members> ReceiveMembers(int socket, const Introduction& hello,
                                       absl::Time deadline) {
  Members members;
  members.rank = static_cast<int>(hello.rank);
  members.peers.resize(hello.ranks);
  for (uint32_t i = 1; i < hello.ranks; ++i) {
    auto received = ReceiveUntil(socket, deadline);
    if (!received.ok()) return received.status();
    const Introduction& about = received->introduction;
    if (about.kind == Kind::kRefusal) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank 0 refuses: ", about.text));
    }
    if (about.kind != Kind::kMember || about.rank >= hello.ranks ||
        about.rank == hello.rank || members.peers[about.rank] != nullptr) {
      return absl::InvalidArgumentError("malformed list of ranks");
    }
    auto peer = PeerMember::Map(std::move(received->memory),
                                std::move(received->life), hello.sizes);
    if (!peer.ok()) return peer.status();
    members.peers[about.rank] = *std::move(peer);
  }
  return members;
}

}  // namespace

absl::StatusOr<Meeting> Meeting::Open() {
  absl::StatusOr<std::string> name = fabric::shm::NewSocketName();
  if (!name.ok()) return name.status();
  absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  auto listener = fabric::shm::ListenAt({*name, ""});
  if (!listener.ok()) return listener.status();
  std::string invitation =
      absl::StrCat(*name, " ", absl::BytesToHexString(*token));
  return Meeting(*std::move(listener), *std::move(token),
                 std::move(invitation));
}

absl::StatusOr<Members> Meeting::Lead(int ranks, SegmentSizes sizes,
                                      absl::Duration timeout) {
  const absl::Status checked = CheckSizes(ranks, 0, 0, sizes);
  if (!checked.ok()) return checked;
  sizes.ranks = static_cast<uint32_t>(ranks);
  auto own = OwnMember::Create(sizes);
  if (!own.ok()) return own.status();
  Table table(listener_.get(), token_, ranks, sizes,
              base::SteadyNow() + timeout);
  const absl::Status filled = table.Fill();
  if (!filled.ok()) return filled;
  return table.Introduce(*std::move(own));
}

absl::StatusOr<Members> Join(absl::string_view invitation, int rank, int ranks,
                             SegmentSizes sizes, absl::Duration timeout) {
  const absl::Time deadline = base::SteadyNow() + timeout;
  const absl::Status checked = CheckSizes(ranks, rank, 1, sizes);
  if (!checked.ok()) return checked;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(invitation, absl::MaxSplits(' ', 1));
  Introduction hello;
  hello.token = absl::HexStringToBytes(parts.second);
  if (!fabric::shm::IsSocketName(parts.first) ||
      hello.token.size() != base::kTokenBytes) {
    return absl::InvalidArgumentError("malformed invitation");
  }
  hello.rank = static_cast<uint32_t>(rank);
  hello.ranks = static_cast<uint32_t>(ranks);
  sizes.ranks = hello.ranks;
  hello.sizes = sizes;
  auto own = OwnMember::Create(sizes);
  if (!own.ok()) return own.status();
  auto socket = fabric::shm::ConnectTo({parts.first, ""});
  while (absl::IsResourceExhausted(socket.status()) &&
         base::SteadyNow() < deadline) {
    absl::SleepFor(kConnectPause);
    socket = fabric::shm::ConnectTo({parts.first, ""});
  }
  if (!socket.ok()) return socket.status();
  const absl::Status user = CheckUser(socket->get());
  if (!user.ok()) return user;
  const absl::Status sent = Send(socket->get(), hello, (*own)->memory_fd(),
                                 (*own)->life_fd(), deadline);
  if (!sent.ok()) return sent;
  auto members = ReceiveMembers(socket->get(), hello, deadline);
  if (members.ok()) members->own = *std::move(own);
  return members;
}

}  // namespace penstock::collectives
