// Memory of the program for the answers of calls. Penstock receives into this
// memory where it can. penstock.h includes this header.

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
// Over verbs, the device reads a part of the answer straight into a range of
// the same size. The answer's slice then is the range itself, with the range's
// address. A part is a slice of 64 KiB or more in the sender's message. Among
// ranges of one size, the first one is used first. All other data arrives as
// without this object, and the program copies what it needs.
//
// Check the address of each slice in the answer. Several conditions decide if a
// range is used: the path, the slices that the peer sends, and the memory that
// can be registered.
//
// Over shm, the answer stays in the sender's memory if the processes share
// memory. Otherwise ranges are used for slices of 4 KiB or more. Over tcp and
// HTTP/2, ranges are not used.
//
// The first large message that a call receives uses the ranges. Other calls
// cannot use them until that message is freed, and until reads for earlier
// calls or attempts have ended.
//
// Thread-safe, except for AttachTo().
class Destinations {
 public:
  // The kind of memory of a range: the host's memory, or memory of a device of
  // this process (docs/gpu.md), which only a device can access.
  enum class Kind { kHost, kDevice };
  struct Range {
    void* data = nullptr;
    size_t size = 0;
    Kind kind = Kind::kHost;
  };

  // The time for which devices may keep the ranges registered. Registering
  // takes tens of microseconds, plus some time for each page. Therefore kOnce
  // registers only ranges above 256 KiB. Smaller ranges are used only if they
  // are in memory of Allocator, or in memory that RegisterMemory() has
  // declared.
  enum class Use {
    kOnce,
    // As long as this object exists. Make the object once, and attach it to one
    // call after another. The ranges count as declared by RegisterMemory().
    kOften,
  };

  // The memory in which slices of the answer may lie. With kAnywhere and a
  // range of a device, slices may lie in memory of devices, of this process or
  // of the peer. Only a device can read such slices. Otherwise all slices lie
  // on the host.
  enum class Slices { kHost, kAnywhere };

  // Makes destinations in these ranges. `owner` keeps the ranges valid. This
  // object, its calls and their messages hold references to `owner`, and the
  // last one is released on any thread. `owner` may be null if the program
  // waits until in_use() is false before it frees a range. Ranges that overlap
  // an earlier range are never used.
  static std::shared_ptr<Destinations> Make(const std::vector<Range>& ranges,
                                            std::shared_ptr<const void> owner,
                                            Use use = Use::kOnce);
  static std::shared_ptr<Destinations> Make(const std::vector<Range>& ranges,
                                            std::shared_ptr<const void> owner,
                                            Use use, Slices slices);
  ~Destinations();
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  // Gives the ranges to the call of `context`. Call it after the call was
  // prepared, by PrepareAsync...() or with a reactor, and before the call is
  // started. Does nothing in a process that cannot use Penstock. Sends nothing
  // to the peer, over any path.
  void AttachTo(grpc::ClientContext* context) const;

  // Returns true while a call may still write to the ranges, or while slices of
  // a message in the ranges exist. A call that failed may still write until its
  // reads end, or until its connection ends. Either takes a few seconds at most
  // if a thread waits in gRPC meanwhile.
  bool in_use() const;

 private:
  explicit Destinations(std::shared_ptr<memory::Destinations> shared);

  const std::shared_ptr<memory::Destinations> shared_;
};

}  // namespace penstock

#endif  // PENSTOCK_DESTINATIONS_H_
