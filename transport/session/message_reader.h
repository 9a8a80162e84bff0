// Fetches announced messages: in place where the fabric can, else by chunked
// reads into fresh memory, starting over on the lifeline if a path is lost.

#ifndef PENSTOCK_TRANSPORT_SESSION_MESSAGE_READER_H_
#define PENSTOCK_TRANSPORT_SESSION_MESSAGE_READER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/protocol/chunk_tuner.h"
#include "transport/protocol/puller.h"
#include "transport/session/tuning.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {

// Not thread-safe. Reads of private memory are admitted by a budget: the bytes
// that are being read or have not been consumed by the application. A message
// always starts while nothing is in use, so any size passes.
//
// What the application waits for starts whatever the budget says, for it could
// wait for ever; but not while more than the budget is abandoned: being read
// for streams that have ended. An honest peer answers those reads too, and
// soon.
//
// No call takes longer than the logarithm of what the peer has announced, for
// each message that it is about.
class MessageReader {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The message `id` of `stream` is here, or cannot be had. Called once for
    // each Begin(), possibly from within it, unless Abandon() came first.
    // `budgeted` bytes are to be returned with Consumed().
    virtual void OnMessageRead(uint32_t stream, uint64_t id,
                               absl::StatusOr<memory::Bytes> message,
                               uint64_t budgeted) = 0;
    // Nothing reads from the peer's region `id` any more.
    virtual void OnRegionReleased(uint64_t id) = 0;
  };

  MessageReader(fabric::Endpoint* lifeline, uint64_t budget, bool load_in_place,
                Owner* owner, const Tuning& tuning = Tuning());

  // `epoch` is how announcements name it.
  void UseFastPath(fabric::Endpoint* path, uint32_t epoch);
  // Reads that are under way there start over on the lifeline; what they were
  // filling is returned, to be kept until the path is destroyed.
  std::vector<memory::Block> LoseFastPath();
  // The session is over: nothing is started any more, nobody wants anything.
  // Reads under way on the lifeline still end; those on the fast path do not,
  // and what they were filling is returned as above.
  std::vector<memory::Block> Stop();

  // INVALID_ARGUMENT: the peer used an id twice.
  absl::Status Begin(uint32_t stream, const wire::Announce& announce);
  // The application waits for the message: it starts, budget or not. One that
  // is under way, or unknown, is left alone.
  void Want(uint64_t id);
  // Messages that were begun, and neither read nor failed.
  size_t pending() const { return pulls_.size(); }
  // The stream does not want its messages any more.
  void Abandon(uint32_t stream);
  // The application has taken `bytes` that were read, not loaded in place.
  void Consumed(uint64_t bytes);
  // A message that nobody wants: lets the peer have its memory back.
  void Discard(const wire::Announce& announce);

  void OnReadDone(uint64_t id, const absl::Status& status);

  // What a message that begins now is cut into, on either path.
  size_t chunk_bytes(const fabric::Endpoint* path) const {
    return (path == lifeline_ ? lifeline_tuner_ : fast_tuner_).chunk_bytes();
  }

 private:
  struct Pull {
    uint32_t stream;
    wire::Announce announce;
    memory::Block block;
    std::unique_ptr<protocol::Puller> puller;
    fabric::Endpoint* path = nullptr;
    fabric::RemoteRegion region;
    bool lifeline_only = false;  // the fast path has failed it
    bool wanted = true;          // by its stream
    // Reads that StartReads() has yet to start, while it runs.
    std::deque<protocol::Puller::Chunk> to_start;
    bool starting = false;
  };

  // The announced region on that path, or null.
  const wire::AnnouncedRegion* FindRegion(const wire::Announce& announce,
                                          uint32_t path) const;
  // That on the fast path, if it can be used in place.
  const wire::AnnouncedRegion* FindLoadable(
      const wire::Announce& announce) const;
  void GiveBackUnread(const wire::Announce& announce);
  bool LoadInPlace(uint32_t stream, const wire::Announce& announce);
  bool MayStart(const Pull& pull) const;
  bool MayStartWanted() const { return abandoned_ <= budget_; }
  void Start(uint64_t id);
  void AbandonPull(uint64_t id);
  // Takes it out, and out of all that leads to it.
  Pull Take(uint64_t id);
  bool ChoosePath(Pull* pull) const;
  protocol::ChunkTuner MakeTuner(const fabric::Endpoint& path) const;
  protocol::ChunkTuner* TunerOf(const Pull& pull) {
    return pull.path == lifeline_ ? &lifeline_tuner_ : &fast_tuner_;
  }
  void StartReads(uint64_t id,
                  const std::vector<protocol::Puller::Chunk>& reads);
  void Finish(uint64_t id);
  void Fail(uint64_t id, const absl::Status& status);
  void StartDeferred();

  fabric::Endpoint* const lifeline_;
  fabric::Endpoint* fast_path_ = nullptr;
  uint32_t fast_epoch_ = 0;
  const uint64_t budget_;
  const bool load_in_place_;
  Owner* const owner_;
  const Tuning tuning_;
  protocol::ChunkTuner lifeline_tuner_;
  protocol::ChunkTuner fast_tuner_;
  uint64_t in_use_ = 0;
  uint64_t abandoned_ = 0;  // of in_use_: being read for nobody
  std::map<uint64_t, Pull> pulls_;
  std::set<std::pair<uint32_t, uint64_t>> of_streams_;  // all of pulls_
  // The ids of a peer's announcements only grow: in order of coming.
  std::set<uint64_t> under_way_;  // have a puller
  std::set<uint64_t> deferred_;   // wait for budget
  std::set<uint64_t> wanted_;  // the application waits; abandoned reads first
  bool starting_deferred_ = false;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_MESSAGE_READER_H_
