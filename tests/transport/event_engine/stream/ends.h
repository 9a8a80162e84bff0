// Two ends of a movable stream, over a fake link for the path and strings for
// TCP.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_STREAM_ENDS_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_STREAM_ENDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/event_engine/stream/movable_stream.h"
#include "transport/event_engine/stream/packet.h"
#include "transport/fabric/fake/link.h"

namespace penstock {
namespace event_engine {

using fabric::fake::Link;
using fabric::fake::LinkOptions;
using fabric::fake::Side;

inline memory::Bytes BytesOf(const std::string& text) {
  return *memory::CopyBytes(
      {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

inline std::string TextOf(const memory::Payload& payload) {
  std::string text(payload.size(), '\0');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

// Returns TLS records of all sizes. Some records contain bytes that look like a
// mark.
inline const std::string& TlsStream() {
  static const auto* const stream = [] {
    constexpr size_t kBytes = 8 << 20;
    auto* const all = new std::string;
    std::mt19937 random(1);
    while (all->size() < kBytes) {
      const size_t size = random() % (size_t{1} << random() % 15);
      all->push_back(static_cast<char>(20 + random() % 4));
      all->append(
          {3, 3, static_cast<char>(size >> 8), static_cast<char>(size & 0xff)});
      const size_t end = all->size() + size;
      if (size > kMarkBytes) all->append(EncodeMark(all->size()));
      while (all->size() < end) all->push_back(static_cast<char>(random()));
    }
    return all;
  }();
  return *stream;
}

// One side of a connection: a stream, and a string in place of the TCP socket.
// Makes the calls that a stream's user must make.
struct End {
  MovableStream stream;
  std::string tcp;        // written by this side, not yet read by the peer
  std::string* peer_tcp;  // the other side's `tcp`
  uint64_t sent = 0;
  uint64_t got = 0;
  absl::Status status;  // names the first wrong byte
  bool has_records = false;

  // Makes the stream respect the boundaries of TLS records.
  void FollowRecords() {
    has_records = true;
    stream.FollowRecords();
  }

  // Returns the byte at an offset of the stream. Without TLS records, offsets
  // less than 251 apart have different bytes.
  char ByteAt(uint64_t offset) const {
    if (has_records) return TlsStream()[offset % TlsStream().size()];
    return static_cast<char>(offset % 251);
  }

  void Send(size_t size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text.push_back(ByteAt(sent + i));
    sent += size;
    if (stream.on_path()) {
      stream.Write(memory::Payload(BytesOf(text)));
    } else {
      stream.NoteWritten({reinterpret_cast<const uint8_t*>(text.data()), size});
      stream.CountWritten(size);
      tcp += text;
    }
    Settle();
  }

  // Polls the path first, unless the connection is between hosts.
  void ReadTcp(size_t size) {
    while (!has_records && stream.Poll()) Settle();
    Settle();
    const std::string text = peer_tcp->substr(0, size);
    peer_tcp->erase(0, size);
    if (stream.IsPlain(text.size())) {
      stream.CountReceived(text.size());
      Check(text);
    } else {
      stream.OnTcp(BytesOf(text));
    }
    Settle();
  }

  void Poll() {
    stream.Poll();
    Settle();
  }

  void Settle() {
    if (stream.has_due()) Check(TextOf(stream.Take()));
    if (stream.has_lost_path()) tcp += TextOf(stream.LeavePath());
  }

  void Check(const std::string& text) {
    for (char byte : text) {
      if (status.ok() && byte != ByteAt(got)) {
        status = absl::DataLossError(absl::StrCat("at offset ", got));
      }
      ++got;
    }
  }
};

struct Pair {
  explicit Pair(LinkOptions options = LinkOptions())
      : options(std::move(options)) {
    ends[0].peer_tcp = &ends[1].tcp;
    ends[1].peer_tcp = &ends[0].tcp;
  }
  virtual ~Pair() = default;

  virtual bool HasLink() { return link != nullptr; }
  // Connects the sides that have no path.
  virtual void NewLink() {
    link = std::make_unique<Link>(options);
    waiting[0] = link->Take(Side::kA);
    waiting[1] = link->Take(Side::kB);
  }

  void Move(int side) {
    if (waiting[side] == nullptr) return;
    ends[side].stream.MoveTo(std::move(waiting[side]));
    ends[side].Settle();
  }

  bool BothMoved() {
    return ends[0].stream.path() != nullptr && ends[1].stream.path() != nullptr;
  }

  void PollAll() {
    for (int i = 0; i < 20; ++i) {
      for (End& end : ends) end.Poll();
    }
  }

  void Finish() {
    for (int i = 0; i < 10000 && !IsQuiet(); ++i) {
      for (End& end : ends) {
        end.Poll();
        end.ReadTcp(1 << 20);
      }
    }
  }

  bool IsQuiet() {
    return ends[0].got == ends[1].sent && ends[1].got == ends[0].sent;
  }

  // Returns the first error of a stream, or a wrong byte.
  absl::Status status() const {
    for (const End& end : ends) {
      if (!end.stream.error().ok()) return end.stream.error();
      if (!end.status.ok()) return end.status;
    }
    return absl::OkStatus();
  }

  // Takes one random step, of random size. `below` returns a random number
  // below its argument.
  void Step(const std::function<uint32_t(uint32_t)>& below) {
    const auto size = [&] { return size_t{1} << below(13) | below(64); };
    const uint32_t side = below(2);
    switch (below(8)) {
      case 0:
      case 1:
        return ends[side].Send(size());
      case 2:
        return ends[side].ReadTcp(size());
      case 3:
      case 4:
        return ends[side].Poll();
      case 5:
        return Move(static_cast<int>(side));
      case 6:
        if (!HasLink()) NewLink();
        return;
      default:
        break;
    }
    if (ends[0].has_records) return LoseBetweenHosts(below);
    if (!BothMoved() || below(4) != 0) return;
    if (below(3) == 0) return link->FailNthExpose(Side::kA, 1);
    // Polls before dropping the link, so that both sides learn how far the peer
    // has moved. A fake link loses packets, but a path between two processes of
    // one host does not.
    PollAll();
    link->Drop();
    // Sends from either side, even before that side has noticed the loss.
    if (below(2) == 0) ends[below(2)].Send(size());
    ends[0].Poll();
    ends[1].Poll();
    link.reset();
  }

  // Loses the path at any time, with all packets in flight. Sometimes only one
  // side loses the path.
  virtual void LoseBetweenHosts(
      const std::function<uint32_t(uint32_t)>& below) {
    if (link == nullptr || below(3) != 0) return;
    if (below(2) == 0) {
      link->Drop();
    } else {
      link->DropOneSide(below(2) == 0 ? Side::kA : Side::kB);
    }
    link.reset();
  }

  // Delivers everything. Returns true if each end received all bytes of the
  // other end.
  bool Ends() {
    Move(0);
    Move(1);
    Finish();
    return IsQuiet();
  }

  LinkOptions options;
  End ends[2];
  std::unique_ptr<Link> link;
  std::unique_ptr<fabric::Endpoint> waiting[2];
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_STREAM_ENDS_H_
