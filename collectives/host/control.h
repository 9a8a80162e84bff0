// The beginning of a rank's segment, which its peers map read-only.

#ifndef PENSTOCK_COLLECTIVES_HOST_CONTROL_H_
#define PENSTOCK_COLLECTIVES_HOST_CONTROL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::collectives {

// Each field is written only by the owner of the segment. Fields that change
// often have a separate cache line. All fields are zero at first.
struct Control {
  static constexpr size_t kLine = 64;
  static constexpr int kWords = 2;  // of a call, see call.h

  // The number of posts, modulo 2^32. Peers wait for changes of this number,
  // also by futex().
  alignas(kLine) std::atomic<uint32_t> posted;
  // Not 0 while the owner may sleep in futex().
  alignas(kLine) std::atomic<uint32_t> sleeping;
  // Increases regularly while the owner's process runs.
  alignas(kLine) std::atomic<uint64_t> heartbeat;
  // The thread that sets `heartbeat`, and when the thread started; see
  // thread_state.h. Zero until its first heartbeat.
  std::atomic<uint64_t> beating_thread;
  std::atomic<uint64_t> beating_since;
  // Not 0 once the owner has left the group.
  alignas(kLine) std::atomic<uint32_t> left;
  // The Fault in the low 8 bits. The higher bits are the rank that caused the
  // fault.
  std::atomic<uint32_t> failure;
  // The calls of the last two posts. A post with an even number writes
  // calls[0], a post with an odd number calls[1].
  alignas(kLine) std::atomic<uint64_t> calls[2][kWords];
  // The locations of the owner's operands in these two calls. 0 means the slot.
  // Another value is the offset in the owner's pool plus 1.
  std::atomic<uint64_t> places[2];
};

// The state of the two rings between two ranks, as written by one of them: the
// owner of the segment. Zero at first.
struct MailWords {
  // The number of bytes that the owner has put into its ring for the peer,
  // modulo 2^32.
  alignas(Control::kLine) std::atomic<uint32_t> written;
  // The number of bytes that the owner has taken from the peer's ring, modulo
  // 2^32.
  alignas(Control::kLine) std::atomic<uint32_t> read;
  // Not 0 while a thread of the owner may sleep until the peer changes its
  // words.
  alignas(Control::kLine) std::atomic<uint32_t> sleeping;
};

// The offset of the slots. After the slots come the pool, and then, for each
// rank, the MailWords and the ring.
inline constexpr size_t kControlBytes = 4096;
inline constexpr size_t kMailWordsBytes = 256;

// The parts of a segment. Equal on all ranks of a group.
struct SegmentSizes {
  uint64_t slot_bytes = 0;
  uint64_t pool_bytes = 0;
  uint32_t ranks = 1;

  // Returns the size of a ring. Large groups have small rings, so that all
  // rings of a rank take 256 KiB.
  uint64_t ring_bytes() const {
    uint64_t bytes = 64 * 1024;
    while (bytes > 4096 && bytes * ranks > 256 * 1024) bytes /= 2;
    return bytes;
  }
  uint64_t mail_at(int peer) const {
    return kControlBytes + 2 * slot_bytes + pool_bytes +
           peer * (kMailWordsBytes + ring_bytes());
  }
  // Returns the size of the segment in whole pages.
  uint64_t total() const {
    return (mail_at(static_cast<int>(ranks)) + kControlBytes - 1) /
           kControlBytes * kControlBytes;
  }
};

static_assert(sizeof(Control) <= kControlBytes, "fits in a page");
static_assert(sizeof(MailWords) <= kMailWordsBytes, "fits");
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "processes share no locks");

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_CONTROL_H_
