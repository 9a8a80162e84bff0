// Tests shm::ShmEndpoint against a peer that owns the other control segment and
// the set-up socket: releases of loans, segments, regions, and the end.
//
// The input is a sequence of steps: a byte for the kind, then the arguments. If
// the input has an odd length, the peer counts as another user, and the
// endpoint copies from the peer's memory instead of using it in place.

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/endpoint.h"
#include "transport/fabric/shm/link.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fuzz {
namespace {

using fabric::RemotePart;
using fabric::RemoteRegion;
using fabric::shm::Arena;
using fabric::shm::ControlPage;
using fabric::shm::Segment;
using fabric::shm::SetupMessage;
using fabric::shm::ShmEndpoint;

constexpr uint32_t kRingBytes = 128 * 1024;
constexpr uint64_t kSegmentBytes = 8192;

// The steps of an input, with their arguments. A part is u32 segment, u32 loan,
// u64 offset, u32 length. A region is u8 number of parts, then the parts, which
// usually belong to one loan.
enum Step : uint8_t {
  kMoveHead,      // u32 to add
  kSetReleases,   // u64
  kMoveReleases,  // u8 to add
  kSetRelease,    // u16 entry, u32 loan
  kSetTail,       // u64
  kClose,
  kPassSegment,  // u32 id, u32 claimed size
  kPassBytes,    // u8 length, bytes
  kLoad,         // a region
  kRead,         // a part, u16 offset in the part, u16 bytes
  kGiveBack,     // a region
  kExpose,       // u8 pieces, u16 bytes
  kSend,         // u16 bytes
  kPoll,
  kLetGo,
  kSteps
};

// Returns a segment that is made once. A peer may pass the same memory
// repeatedly.
const Segment& SharedSegment() {
  static const Segment& segment =
      *new Segment(Segment::Create("penstock-fuzz", kSegmentBytes).value());
  return segment;
}

class Events : public fabric::EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    Require(!broken_ && packet.size() <= fabric::shm::kMaxPacketBytes,
            "a packet comes before the end");
  }
  void OnWritable() override { Require(!broken_, "no word after the end"); }
  void OnReadDone(uint64_t, const absl::Status&) override { ++reads_done; }
  void OnDoorbell() override { Require(false, "shm rings no doorbell"); }
  void OnBroken(const absl::Status&) override {
    Require(!broken_, "the end comes once");
    broken_ = true;
  }

  int reads_done = 0;

 private:
  bool broken_ = false;
};

class Victim {
 public:
  explicit Victim(bool copies) {
    int ends[2];
    Require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
                       0, ends) == 0,
            "there are sockets");
    socket_ = base::UniqueFd(ends[0]);
    absl::StatusOr<Segment> own = fabric::shm::CreateControl(kRingBytes);
    auto mapped =
        fabric::shm::MapControl(base::UniqueFd(dup(hostile_.fd())), kRingBytes);
    fabric::shm::Sharing sharing;
    sharing.arena = AnArena();
    sharing.copies = copies;
    auto link =
        fabric::shm::Link::Create(base::UniqueFd(ends[1]), *std::move(own),
                                  *std::move(mapped), std::move(sharing));
    endpoint_ = std::make_unique<ShmEndpoint>(*link);
    endpoint_->Start(&events_);
  }

  void Run(Input* input) {
    while (!input->empty()) Take(input);
  }

 private:
  static std::shared_ptr<Arena> AnArena() {
    static const auto& arena =
        *new std::shared_ptr<Arena>(Arena::Create(1 << 22));
    return arena;
  }

  void Take(Input* input) {
    const auto step = input->Number<uint8_t>() % kSteps;
    if (step <= kClose) return ChangePage(step, input);
    if (step <= kPassBytes) return Pass(step, input);
    Use(step, input);
  }

  void ChangePage(int step, Input* input) {
    ControlPage* page = PageOf(hostile_);
    switch (step) {
      case kMoveHead:
        page->head += input->Number<uint32_t>();
        break;
      case kSetReleases:
        page->release_head = input->Number<uint64_t>();
        break;
      case kMoveReleases:
        page->release_head += input->Number<uint8_t>();
        break;
      case kSetRelease:
        page->releases[input->Number<uint16_t>() % fabric::shm::kMaxLoans] =
            input->Number<uint32_t>();
        break;
      case kSetTail:
        page->tail = input->Number<uint64_t>();
        break;
      case kClose:
        page->closed = 1;
        break;
    }
  }

  void Pass(int step, Input* input) {
    if (step == kPassSegment) {
      SetupMessage message;
      message.kind = SetupMessage::Kind::kSegment;
      message.segment_id = input->Number<uint32_t>();
      message.size = input->Number<uint32_t>();
      (void)SendSetup(socket_.get(), message, SharedSegment().fd());
    } else {
      const absl::Span<const uint8_t> bytes =
          input->Bytes(input->Number<uint8_t>());
      (void)send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

  void Use(int step, Input* input) {
    switch (step) {
      case kLoad:
        Load(TakeRegion(input));
        break;
      case kRead:
        Read(TakePart(input), input);
        break;
      case kGiveBack:
        endpoint_->GiveBack(TakeRegion(input));
        break;
      case kExpose:
        Expose(input);
        break;
      case kSend:
        (void)endpoint_->Send(
            AsBytes(std::string(input->Number<uint16_t>(), 'm')));
        break;
      case kPoll:
        (void)endpoint_->HasInput();
        (void)endpoint_->Poll();
        (void)endpoint_->TakeDoorbellRequest();
        break;
      case kLetGo:
        loaded_.clear();
        break;
    }
  }

  static RemotePart TakePart(Input* input) {
    RemotePart part;
    const auto segment = input->Number<uint32_t>();
    part.key = fabric::shm::RegionKey(segment, input->Number<uint32_t>());
    part.offset = input->Number<uint64_t>();
    part.length = input->Number<uint32_t>();
    return part;
  }
  static RemoteRegion TakeRegion(Input* input) {
    RemoteRegion region(1 + input->Number<uint8_t>() % 4);
    for (RemotePart& part : region) part = TakePart(input);
    return region;
  }

  // Reads the memory, like an application.
  void Load(const RemoteRegion& region) {
    absl::StatusOr<memory::Payload> loaded = endpoint_->Load(region);
    if (!loaded.ok()) return;
    uint64_t size = 0;
    for (const RemotePart& part : region) size += part.length;
    Require(loaded->size() == size && size <= region.size() * kSegmentBytes,
            "loaded bytes are the region's");
    for (const memory::Bytes& piece : loaded->pieces()) {
      for (uint8_t byte : piece.span()) Require(byte == 0, "they are there");
    }
    loaded_.push_back(*std::move(loaded));
  }

  void Read(const RemotePart& part, Input* input) {
    const uint64_t offset = input->Number<uint16_t>();
    std::vector<uint8_t> into(input->Number<uint16_t>());
    const int before = events_.reads_done;
    endpoint_->Read(part, offset, absl::MakeSpan(into), 1);
    Require(events_.reads_done == before + 1, "a read ends once");
  }

  // Exposes pieces of similar sizes, alternately from the arena and the heap.
  void Expose(Input* input) {
    const size_t pieces = 1 + input->Number<uint8_t>() % 8;
    const std::string text(input->Number<uint16_t>(), 'e');
    memory::Payload payload;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t begin = text.size() * i / pieces;
      const size_t end = text.size() * (i + 1) / pieces;
      payload.Append(PieceOf(text.substr(begin, end - begin), i % 2 == 1));
    }
    if (payload.size() == 0) return;
    auto exposure = endpoint_->Expose(payload, 5);
    if (!exposure.ok()) return;
    Require(exposure->region.size() <= 5, "a region has so many parts at most");
    std::string copy(text.size(), '\0');
    exposure->stable.CopyTo(reinterpret_cast<uint8_t*>(&copy[0]));
    Require(copy == text, "what is lent is what was exposed");
  }
  static memory::Bytes PieceOf(const std::string& text, bool in_arena) {
    if (in_arena) {
      auto lease = AnArena()->Allocate(std::max<size_t>(text.size(), 1));
      if (lease.ok()) {
        std::memcpy((*lease)->data(), text.data(), text.size());
        return {(*lease)->data(), text.size(), *lease};
      }
    }
    return memory::CopyBytes(AsBytes(text)).value();
  }

  Segment hostile_ = fabric::shm::CreateControl(kRingBytes).value();
  base::UniqueFd socket_;
  Events events_;
  std::unique_ptr<ShmEndpoint> endpoint_;
  std::vector<memory::Payload> loaded_;  // may outlive the endpoint
};

std::string StepOf(Step step, const std::string& rest = "") {
  return static_cast<char>(step) + rest;
}

std::string PartOf(uint32_t segment, uint64_t offset, uint32_t length) {
  return Number(segment) + Number<uint32_t>(1) + Number(offset) +
         Number(length);
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string poll = StepOf(kPoll);
  const std::string pass =
      StepOf(kPassSegment, Number<uint32_t>(1) + Number<uint32_t>(8192));
  const std::string load =
      StepOf(kLoad, Number<uint8_t>(0) + PartOf(1, 4096, 4096));
  const std::string load_parts =
      StepOf(kLoad, Number<uint8_t>(2) + PartOf(1, 4096, 100) +
                        PartOf(1, 0, 4096) + PartOf(1, 4000, 1));
  const std::string read = StepOf(
      kRead, PartOf(1, 0, 100) + Number<uint16_t>(50) + Number<uint16_t>(50));
  const std::string give_back =
      StepOf(kGiveBack, Number<uint8_t>(0) + PartOf(1, 0, 100));
  const std::string expose =
      StepOf(kExpose, Number<uint8_t>(0) + Number<uint16_t>(9000));
  const std::string expose_parts =
      StepOf(kExpose, Number<uint8_t>(6) + Number<uint16_t>(60000));
  const std::string release =
      StepOf(kSetRelease, Number<uint16_t>(0) + Number<uint32_t>(1)) +
      StepOf(kMoveReleases, "\1");
  return {pass + load + read + give_back + StepOf(kLetGo) + poll,
          pass + load_parts + StepOf(kLetGo) + poll,
          expose_parts + release + poll + expose_parts,
          expose + expose + release + poll + expose,
          StepOf(kMoveHead, Number<uint32_t>(8)) + poll +
              StepOf(kSend, Number<uint16_t>(60000)) + StepOf(kClose) + poll,
          expose + StepOf(kSetReleases, Number(~uint64_t{0})) + poll + expose,
          StepOf(kPassBytes, "\4abcd") + load + pass + load,
          StepOf(kSetTail, Number<uint64_t>(64)) +
              StepOf(kSend, Number<uint16_t>(9)) + poll};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::fuzz::Input input(data, size);
  penstock::fuzz::Victim(/*copies=*/size % 2 == 1).Run(&input);
  return 0;
}
