#include "tests/collectives/net/reference.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "collectives/reduction/reduction.h"
#include "collectives/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using Kind = Action::Kind;

class Reference {
 public:
  Reference(const Plan& plan, tensor::DType dtype, ReduceOp op,
            const Memory& input, Memory* data)
      : size_(tensor::ElementSize(dtype)),
        dtype_(dtype),
        op_(op == ReduceOp::kAverage ? ReduceOp::kSum : op),
        input_(input),
        data_(*data) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      ranks_.push_back({MakeSchedule(plan, rank)});
    }
  }

  void Run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        while (RunStep(static_cast<int>(rank))) moves = true;
      }
    }
    for (const Rank& rank : ranks_) {
      EXPECT_EQ(rank.next, rank.schedule.size()) << "a deadlock";
    }
  }

 private:
  struct Rank {
    Schedule schedule;
    size_t next = 0;  // the first action of the step
    bool has_sent = false;
  };

  size_t EndOf(const Rank& rank) const {
    size_t end = rank.next;
    while (end < rank.schedule.size() &&
           rank.schedule[end].step == rank.schedule[rank.next].step) {
      ++end;
    }
    return end;
  }

  // Returns false if the step cannot end yet.
  bool RunStep(int number) {
    Rank& rank = ranks_[number];
    const size_t end = EndOf(rank);
    if (end == rank.next) return false;
    if (!std::exchange(rank.has_sent, true)) Send(number, end);
    std::map<int, size_t> wanted;
    for (size_t i = rank.next; i < end; ++i) {
      const Action& action = rank.schedule[i];
      if (action.kind != Kind::kSend) ++wanted[action.peer];
    }
    for (const auto& [peer, count] : wanted) {
      if (links_[{peer, number}].size() < count) return false;
    }
    for (size_t i = rank.next; i < end; ++i) Receive(number, rank.schedule[i]);
    rank.next = end;
    rank.has_sent = false;
    return true;
  }

  void Send(int number, size_t end) {
    const Rank& rank = ranks_[number];
    for (size_t i = rank.next; i < end; ++i) {
      const Action& action = rank.schedule[i];
      if (action.kind != Kind::kSend) continue;
      const auto& from = action.buffer == Action::Buffer::kInput
                             ? input_[number]
                             : data_[number];
      const auto begin = from.begin() + action.range.begin * size_;
      links_[{number, action.peer}].emplace_back(
          begin, begin + action.range.count * size_);
    }
  }

  void Receive(int number, const Action& action) {
    if (action.kind == Kind::kSend) return;
    auto& link = links_[{action.peer, number}];
    const std::vector<uint8_t> bytes = std::move(link.front());
    link.pop_front();
    uint8_t* const into = data_[number].data() + action.range.begin * size_;
    if (action.kind == Kind::kReceive) {
      if (!bytes.empty()) std::memcpy(into, bytes.data(), bytes.size());
      return;
    }
    const void* operands[2] = {bytes.data(), into};
    if (action.kind == Kind::kReduceRight) std::swap(operands[0], operands[1]);
    collectives::Reduce(op_, dtype_, operands, into,
                        static_cast<size_t>(action.range.count));
  }

  const size_t size_;
  const tensor::DType dtype_;
  const ReduceOp op_;
  const Memory& input_;
  Memory& data_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<std::vector<uint8_t>>> links_;
};

}  // namespace

void RunInMemory(const Plan& plan, tensor::DType dtype, ReduceOp op,
                 const Memory& input, Memory* data) {
  Reference(plan, dtype, op, input, data).Run();
}

}  // namespace penstock::collectives
