// Tests announcements of messages in shared memory that is not as the
// announcement describes it.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/shm_session.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

constexpr uint32_t kSegment = 7;
constexpr uint64_t kSegmentBytes = 1 << 20;
constexpr uint64_t kKey = uint64_t{kSegment} << 32;

// A session over shm with a call in progress.
struct Called {
  explicit Called(Victim* victim) {
    if (victim->is_server()) {
      session = ReachShm(victim);
      if (session.path == nullptr) return;
      peer = session.peer.get();
      socket = session.path->socket();
      memory = &session.path->victim_memory();
      stream = peer->OpenStream(RequestMetadata("/victim/Echo"));
    } else {
      server = std::make_unique<ShmServer>(victim, Moment::kCalled);
      peer = server->peer.get();
      socket = server->socket.get();
      memory = server->victim_memory.get();
      stream = 1;  // the call has come over the ring, which nobody reads
      peer->Send(FrameOf(type::kHeaders, stream, ResponseMetadata()));
    }
  }

  ShmSession session;
  std::unique_ptr<ShmServer> server;
  Peer* peer = nullptr;
  SetupSocket* socket = nullptr;  // null on failure
  const VictimMemory* memory = nullptr;
  uint32_t stream = 0;
};

// Returns true if an answer is in the ring, after the call's own frames.
bool HasAnswered(const Called& called) {
  // Returns true if the victim's ring has grown: the victim's credit for a
  // message of 1 TiB takes 256 frames.
  if (called.memory->Load(page::kHead) > page::kFirstRingBytes) return true;
  for (const Frame& frame : called.memory->Frames()) {
    if (frame.type == type::kRelease || frame.type == type::kReset) return true;
  }
  return false;
}

// Sends an announcement, and waits for the victim's answer. The answer comes
// over the victim's ring, or over TCP if the path or the session ends.
void Announce(Called* called, const std::string& announcement) {
  called->peer->Send(FrameOf(type::kAnnounce, called->stream, announcement));
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!HasAnswered(*called) && !called->peer->ended()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until)
        << "the victim says nothing";
    const absl::optional<Peer::Received> received =
        called->peer->NextIfAny(std::chrono::milliseconds(5));
    if (received.has_value() && received->unit != unit::kDoorbell) return;
  }
}

// Returns an announcement whose only part is the whole message.
std::string Whole(uint64_t length, uint32_t epoch, uint64_t key,
                  uint64_t offset) {
  return AnnouncementOf(1, length,
                        {Region(epoch, {Part(key, offset, length)})});
}

// Announces these parts of kPart bytes on the path.
constexpr uint64_t kPart = 4096;
std::string Parts(const std::vector<std::string>& parts) {
  return AnnouncementOf(1, kPart * parts.size(), {Region(1, parts)});
}

// Returns announcements of parts of a segment that is lent properly.
std::vector<std::string> OddAnnouncements() {
  std::vector<std::string> odd;
  for (uint64_t offset : {uint64_t{0}, kSegmentBytes - 1, kSegmentBytes,
                          UINT64_MAX, UINT64_MAX - 99, uint64_t{1} << 63}) {
    for (uint64_t length : {uint64_t{0}, uint64_t{100}, kSegmentBytes + 1,
                            uint64_t{1} << 40, UINT64_MAX}) {
      odd.push_back(Whole(length, 1, kKey, offset));
    }
  }
  for (uint32_t epoch : {2u, UINT32_MAX}) {
    odd.push_back(Whole(100, epoch, kKey, 0));
  }
  for (uint64_t key : {uint64_t{0}, kKey + (uint64_t{1} << 32), UINT64_MAX,
                       kKey + 5000, unit::kPushed | kKey}) {
    odd.push_back(Whole(100, 1, key, 0));
  }
  const std::string good = Region(1, {Part(kKey, 0, 100)});
  const std::string bad = Region(1, {Part(kKey, UINT64_MAX, 100)});
  const std::string lifeline = Region(0, {Part(1, 0, 100)});
  odd.push_back(AnnouncementOf(1, 100, {bad, lifeline}));
  odd.push_back(AnnouncementOf(1, 100, {good, good}));
  odd.push_back(
      AnnouncementOf(1, 100, {good, Region(9, {Part(kKey, 0, 100)})}));
  return odd;
}

std::vector<std::string> OddParts() {
  const std::string part = Part(kKey, 0, kPart);
  const std::string elsewhere = Part(kKey + (uint64_t{1} << 32), 0, kPart);
  const std::string beyond = Part(kKey, kSegmentBytes - 50, kPart);
  return {
      Parts({part, Part(kKey, 50, kPart)}),        // the parts overlap
      Parts(std::vector<std::string>(512, part)),  // the same part 512 times
      // Two parts that belong to two loans.
      Parts({part, Part(kKey + 1, kPart, kPart)}),
      Parts({part, beyond}),
      Parts({beyond, part}),
      Parts({part, elsewhere}),  // a segment that is not lent
      Parts({part, Part(kKey, UINT64_MAX - 10, kPart)}),
      // Parts that are longer together than the message.
      AnnouncementOf(1, 200,
                     {Region(1, {Part(kKey, 0, 100), Part(kKey, 100, 100)})}),
  };
}

void AnnounceEach(Victim* victim, const std::vector<std::string>& oddities) {
  SharedMemory memory(kSegmentBytes);
  for (const std::string& odd : oddities) {
    SCOPED_TRACE(absl::BytesToHexString(odd));
    Called called(victim);
    ASSERT_NE(called.socket, nullptr);
    called.socket->Send(
        SetupMessage(setup::kSegment, kSegmentBytes, kSegment, ""),
        {memory.fd()});
    Announce(&called, odd);
    EXPECT_TRUE(called.peer->Finish()) << "the session does not end";
    ASSERT_TRUE(victim->process()->IsAlive());
  }
}

void AnnounceOddRegions(Victim* victim) {
  AnnounceEach(victim, OddAnnouncements());
}

void AnnounceOddParts(Victim* victim) { AnnounceEach(victim, OddParts()); }

// Announces memory that does not match the message: memory with holes, empty
// memory, memory that is smaller than claimed, or memory with missing seals.
void AnnounceWhatIsNotThere(Victim* victim) {
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | 0x10 | F_SEAL_SEAL;
  struct Memory {
    uint64_t size;
    uint64_t allocated;
    int seals;
  };
  for (const Memory& memory :
       {Memory{kSegmentBytes, 0, seals}, Memory{kSegmentBytes, 4096, seals},
        Memory{0, 0, seals}, Memory{4096, 4096, seals},
        Memory{kSegmentBytes, kSegmentBytes, 0},
        Memory{kSegmentBytes, kSegmentBytes, F_SEAL_GROW}}) {
    const int fd = memfd_create("adversary", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    (void)!ftruncate(fd, static_cast<off_t>(memory.size));
    if (memory.allocated > 0) {
      (void)!fallocate(fd, 0, 0, static_cast<off_t>(memory.allocated));
    }
    fcntl(fd, F_ADD_SEALS, memory.seals);
    Called called(victim);
    ASSERT_NE(called.socket, nullptr);
    called.socket->Send(
        SetupMessage(setup::kSegment, kSegmentBytes, kSegment, ""), {fd});
    Announce(&called, Whole(500000, 1, kKey, 100000));
    // Truncates the memory. A victim that accepted the memory would crash when
    // the pages disappear.
    (void)!ftruncate(fd, 0);
    EXPECT_TRUE(called.peer->Finish()) << "the session does not end";
    ASSERT_TRUE(victim->process()->IsAlive());
    close(fd);
  }
}

// Makes the victim copy the memory, which reads each byte.
Attack Copying(Attack attack) {
  attack.victim.environment = {"PENSTOCK_SHM_SHARING=copy"};
  return attack;
}

const Attack kAttacks[] = {
    {"OddRegionsAreHarmless", AnnounceOddRegions},
    {"OddPartsAreHarmless", AnnounceOddParts},
    {"MemoryThatIsNotThereIsHarmless", AnnounceWhatIsNotThere},
    Copying({"OddRegionsThatAreCopiedAreHarmless", AnnounceOddRegions}),
    Copying({"OddPartsThatAreCopiedAreHarmless", AnnounceOddParts}),
    Copying(
        {"MemoryThatIsNotThereToBeCopiedIsHarmless", AnnounceWhatIsNotThere}),
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Region, AgainstServer, ::testing::ValuesIn(kAttacks),
                         NameOfTest);
INSTANTIATE_TEST_SUITE_P(Region, AgainstClient, ::testing::ValuesIn(kAttacks),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
