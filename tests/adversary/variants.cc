#include "tests/adversary/variants.h"

#include "absl/strings/str_cat.h"

namespace penstock::adversary {
namespace {

std::vector<std::string> OddHellos() {
  std::vector<std::string> payloads;
  for (size_t token : {1, 15, 17, 64, 65535}) {
    Hello hello;
    hello.token = std::string(token, 't');
    payloads.push_back(Encode(hello).substr(0, kMaxFramePayload));
  }
  Hello hello;
  hello.token = std::string(16, 't');
  hello.window = 0;
  payloads.push_back(Encode(hello));
  hello.window = UINT32_MAX;
  hello.max_streams = 0;
  payloads.push_back(Encode(hello));
  for (size_t name : {0, 1, 15, 16, 255}) {
    for (size_t data : {0, 1, 1024, 1025}) {
      for (size_t offers : {1, 8, 9}) {
        hello.offers.assign(offers, Offer{true, std::string(name, 'n'),
                                          std::string(data, 'd')});
        payloads.push_back(Encode(hello).substr(0, kMaxFramePayload));
      }
    }
  }
  hello.offers = {{true, "shm", "malformed\n\x1b[31m"}};
  payloads.push_back(Encode(hello));
  return payloads;
}

std::vector<std::string> OddAnnouncements() {
  std::vector<std::string> payloads;
  for (uint64_t id : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{4} << 20,
                            uint64_t{1} << 40, UINT64_MAX}) {
      for (uint64_t key : {uint64_t{0}, uint64_t{1}, unit::kPushed,
                           unit::kPushed | 1, UINT64_MAX}) {
        payloads.push_back(Announcement(id, length, key));
      }
    }
  }
  const std::string head = absl::StrCat(U64(1), U64(100));
  const std::string region = Region(0, {Part(1, 0, 100)});
  for (int regions : {0, 1, 2, 3, 255}) {
    for (int given : {0, 1, 2, 3}) {
      std::string payload = absl::StrCat(head, U8(regions));
      for (int i = 0; i < given; ++i) payload += region;
      payloads.push_back(payload);
    }
  }
  // The numbers of all paths, and numbers that no path has.
  for (uint32_t path : {1u, 2u, UINT32_MAX}) {
    payloads.push_back(
        AnnouncementOf(1, 100, {Region(path, {Part(1, UINT64_MAX, 100)})}));
  }
  // Adds parts that are empty, or do not match the message.
  for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{50}, uint64_t{99},
                          uint64_t{1} << 63, UINT64_MAX}) {
    const std::string part = Part(1, 0, length);
    payloads.push_back(AnnouncementOf(1, 100, {Region(0, {part})}));
    payloads.push_back(AnnouncementOf(1, 100, {Region(0, {part, part})}));
    payloads.push_back(
        AnnouncementOf(1, 100, {Region(0, {Part(1, 0, 100), part})}));
  }
  // Adds more parts than the region has, and more than are allowed.
  for (size_t parts : {0, 2, 512, 513, 65535}) {
    payloads.push_back(AnnouncementOf(
        1, parts, {Region(0, std::vector<std::string>(parts, Part(1, 0, 1)))}));
    payloads.push_back(
        absl::StrCat(head, U8(1), U32(0), U16(parts), Part(1, 0, 100)));
  }
  return payloads;
}

std::vector<std::string> Payloads(uint8_t type) {
  std::vector<std::string> payloads = {"",
                                       "x",
                                       std::string(8, '\xff'),
                                       std::string(9, '\0'),
                                       "\x1b[31m\nforged",
                                       std::string(kMaxFramePayload, '\xff'),
                                       std::string(kMaxFramePayload + 1, 'x')};
  std::vector<std::string> more;
  if (type == type::kHello) more = OddHellos();
  if (type == type::kAnnounce) more = OddAnnouncements();
  payloads.insert(payloads.end(), more.begin(), more.end());
  return payloads;
}

// Returns a log-uniform number.
uint64_t AnyNumber(std::mt19937_64* random, int bits) {
  const int length = static_cast<int>((*random)() % (bits + 1));
  return length == 0 ? 0 : (*random)() >> (64 - length);
}

std::string AnnouncementOfAnySize(std::mt19937_64* random, uint64_t id) {
  const uint64_t length = AnyNumber(random, 64);
  const uint64_t part = (*random)() % 16 == 0 ? AnyNumber(random, 64) : length;
  return AnnouncementOf(
      id, length,
      {Region(0, {Part(AnyNumber(random, 64), AnyNumber(random, 64), part)})});
}

}  // namespace

Frame FrameOfAnySize(std::mt19937_64* random, uint32_t stream, uint64_t id) {
  constexpr uint8_t kTypes[] = {
      type::kAnnounce, type::kAnnounce, type::kAnnounce, type::kCredit,
      type::kRelease,  type::kPing,     type::kPong,     type::kMessage};
  Frame frame = GoodFrame(kTypes[(*random)() % 8], stream);
  if ((*random)() % 8 == 0) frame = GoodFrame((*random)() % 28, stream);
  switch (frame.type) {
    case type::kAnnounce:
      frame.payload = AnnouncementOfAnySize(random, id);
      break;
    case type::kRelease:
    case type::kPing:
    case type::kPong:
      frame.payload = U64(AnyNumber(random, 64));
      break;
    default:
      frame.aux = static_cast<uint32_t>(AnyNumber(random, 32));
  }
  if ((*random)() % 32 == 0) {
    frame.stream = static_cast<uint32_t>(AnyNumber(random, 32));
  }
  if ((*random)() % 64 == 0) frame.sequence = AnyNumber(random, 64);
  if ((*random)() % 64 == 0) frame.ack = AnyNumber(random, 64);
  if ((*random)() % 64 == 0) {
    frame.length = static_cast<uint32_t>(AnyNumber(random, 32));
  }
  return frame;
}

std::vector<uint8_t> FrameTypes() {
  std::vector<uint8_t> types = {0, 7, 15, 28, 127, 128, 255};
  for (uint8_t type = type::kHello; type <= type::kPathOffered; ++type) {
    types.push_back(type);
  }
  for (uint8_t type = type::kHeaders; type <= type::kLastKnown; ++type) {
    types.push_back(type);
  }
  return types;
}

std::vector<uint8_t> UnitTypes() { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 255}; }

Frame GoodFrame(uint8_t type, uint32_t stream) {
  switch (type) {
    case type::kHello:
      return FrameOf(type, 0, Encode(Hello()));
    case type::kPathReady:
      return FrameOf(type, 0, "shm", 1);
    case type::kPathLost:
      return FrameOf(type, 0, "lost", 1);
    case type::kPathWanted:
      return FrameOf(type, 0, "", 2);
    case type::kPathOffered:
      return FrameOf(type, 0, std::string(16, 't'), 2);
    case type::kHeaders:
      return FrameOf(type, stream, RequestMetadata("/victim/Echo"));
    case type::kMessage:
      return FrameOf(type, stream, "message");
    case type::kAnnounce:
      return FrameOf(type, stream, Announcement(1, 100, 1));
    case type::kRelease:
    case type::kPing:
    case type::kPong:
      return FrameOf(type, 0, U64(1));
    case type::kTrailers:
      return FrameOf(type, stream, Known(key::kGrpcStatus, "0"));
    case type::kReset:
      return FrameOf(type, stream, "reset", 1);
    case type::kCredit:
      return FrameOf(type, stream, "", 100);
    case type::kGoaway:
      return FrameOf(type, UINT32_MAX, "goaway", 14);
    case type::kEntry:
      return FrameOf(type, 0, Literal("k", "v"), kFirstEntry);
    default:
      return FrameOf(type, stream);
  }
}

std::vector<Frame> Variants(uint8_t type, uint32_t stream, uint64_t sequence) {
  const Frame good = GoodFrame(type, stream);
  std::vector<Frame> frames = {good};
  const auto add = [&](auto change) {
    frames.push_back(good);
    change(&frames.back());
  };
  for (uint32_t id : {0u, 1u, 2u, stream + 2, UINT32_MAX - 1, UINT32_MAX}) {
    add([=](Frame* frame) { frame->stream = id; });
  }
  for (uint32_t aux : {0u, 1u, 17u, 0x80000000u, UINT32_MAX}) {
    add([=](Frame* frame) { frame->aux = aux; });
  }
  for (uint8_t flags : {1, 2, 4, 7, 8, 255}) {
    add([=](Frame* frame) { frame->flags = flags; });
  }
  for (uint64_t number : {uint64_t{0}, uint64_t{1}, sequence, sequence + 1,
                          UINT64_MAX - 1, UINT64_MAX}) {
    add([=](Frame* frame) { frame->sequence = number; });
  }
  for (uint64_t ack : {uint64_t{0}, uint64_t{1000}, UINT64_MAX}) {
    add([=](Frame* frame) { frame->ack = ack; });
  }
  const uint32_t size = static_cast<uint32_t>(good.payload.size());
  for (uint32_t length : {size + 1, size - 1, 0u, UINT32_MAX}) {
    add([=](Frame* frame) { frame->length = length; });
  }
  add([](Frame* frame) { frame->zero = 1; });
  for (const std::string& payload : Payloads(type)) {
    add([&](Frame* frame) { frame->payload = payload; });
  }
  return frames;
}

std::vector<std::string> UnitVariants(uint8_t type) {
  std::vector<std::string> units;
  for (uint64_t cookie : {uint64_t{0}, uint64_t{1}, unit::kPushed,
                          unit::kPushed | 1, UINT64_MAX}) {
    for (uint32_t length : {0, 1, 19, 20, 21, 65536, 65537}) {
      const std::string body(length, '\0');
      units.push_back(Unit(type, cookie, body));
      // Adds only the header. The body follows with a later unit, or never.
      units.push_back(UnitHeader(length, type, cookie));
    }
    for (uint32_t length : {262144u, 262145u, 1048576u, 1048577u, UINT32_MAX}) {
      units.push_back(UnitHeader(length, type, cookie));
    }
    std::string padded = UnitHeader(0, type, cookie);
    padded[6] = 1;
    units.push_back(padded);
  }
  if (type != unit::kRead) return units;
  for (uint64_t key : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    for (uint64_t offset : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
      for (uint32_t length : {0u, 1u, 1048576u, 1048577u, UINT32_MAX}) {
        units.push_back(
            Unit(type, 1, absl::StrCat(U64(key), U64(offset), U32(length))));
      }
    }
  }
  return units;
}

Frame RandomFrame(std::mt19937* random) {
  const std::vector<uint8_t> types = FrameTypes();
  const uint8_t type = types[(*random)() % types.size()];
  const uint32_t stream = 1 + (*random)() % 5;
  const std::vector<Frame> variants = Variants(type, stream, 1);
  Frame frame = variants[(*random)() % variants.size()];
  // Keeps most sequence numbers right, because a wrong number ends most
  // sessions.
  if ((*random)() % 16 != 0) frame.sequence = absl::nullopt;
  if ((*random)() % 16 != 0) frame.ack = absl::nullopt;
  if ((*random)() % 16 != 0) frame.length = absl::nullopt;
  if ((*random)() % 16 != 0) frame.zero = 0;
  if ((*random)() % 8 != 0) frame.flags &= 6;
  return frame;
}

}  // namespace penstock::adversary
