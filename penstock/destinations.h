// Memory of the program's for the answers of calls, which Penstock receives
// into where it can. penstock.h includes this.

#ifndef PENSTOCK_DESTINATIONS_H_
#define PENSTOCK_DESTINATIONS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "grpcpp/client_context.h"

namespace penstock {

namespace memory {
class Destinations;
}

// Ranges of memory, for a call that is prepared and not yet started:
//
//   auto places = penstock::Destinations::Make({{weights, bytes}}, owner);
//   auto call = stub->PrepareAsyncPull(&context, request, &queue);
//   places->AttachTo(&context);
//   call->StartCall();
//
// Over verbs, a part of the answer that has the size of a range is read into
// that range, by the device: the answer's slice then is the range itself, and
// lies at its address. There is a part for each slice that the sender's message
// has, of 64 KiB or more. Of ranges of one size, the first is used first. All
// else lies where it would without this, and the program copies what it wants.
// So do look where a slice lies; whether a range was used depends on the path,
// on what the peer sends, and on what can be registered.
//
// Over shm, where processes share memory the answer is used where the sender
// has it, and where they do not, ranges are used for slices of 4 KiB or more.
// Over tcp and HTTP/2 they are not used.
//
// The first large message that a call receives uses them. While that message,
// or a read for an earlier call or attempt, has them, other calls do not.
//
// Thread-safe, but for AttachTo().
class Destinations {
 public:
  // What a range is made of: the host's memory, or that of a device of this
  // process (docs/gpu.md), which only a device can touch.
  enum class Kind { kHost, kDevice };
  struct Range {
    void* data = nullptr;
    size_t size = 0;
    Kind kind = Kind::kHost;
  };

  // How long devices may keep the ranges registered. To register takes tens of
  // microseconds and some for each page. So kOnce uses ranges above 256 KiB
  // only, and others if they are in memory that RegisterMemory() has declared,
  // or of Allocator.
  enum class Use {
    kOnce,
    // As long as this object lives: make it once, and attach it to one call
    // after another. The ranges are as if declared by RegisterMemory().
    kOften,
  };

  // Where slices of the answer may lie. With kAnywhere, and where a range is a
  // device's, some may lie in memory of devices, also of the peer's, which only
  // a device can read. Else all are on the host.
  enum class Slices { kHost, kAnywhere };

  // `owner` keeps the ranges valid. It is held until this object, and every
  // call and message that has it, are gone, and is let go on any thread. May be
  // null, if in_use() is minded instead. Ranges that overlap one before them
  // are never used.
  static std::shared_ptr<Destinations> Make(const std::vector<Range>& ranges,
                                            std::shared_ptr<const void> owner,
                                            Use use = Use::kOnce);
  static std::shared_ptr<Destinations> Make(const std::vector<Range>& ranges,
                                            std::shared_ptr<const void> owner,
                                            Use use, Slices slices);
  ~Destinations();
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  // Gives the ranges to the call of `context`: after it was prepared, by
  // PrepareAsync...() or with a reactor, and before it is started. Does nothing
  // in a process that cannot use Penstock. Nothing of this leaves the process,
  // whatever carries the call.
  void AttachTo(grpc::ClientContext* context) const;

  // Whether a call may yet write to the ranges, or has written a message there
  // of which there are slices. A call that has ended, with an error, may do so
  // for a while: until reads end that were under way, or their connection does,
  // which takes seconds at most if some thread waits in gRPC meanwhile.
  bool in_use() const;

 private:
  explicit Destinations(std::shared_ptr<memory::Destinations> shared);

  const std::shared_ptr<memory::Destinations> shared_;
};

}  // namespace penstock

#endif  // PENSTOCK_DESTINATIONS_H_
