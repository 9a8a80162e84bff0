// The streams of a transport, in the order of creation.

#ifndef PENSTOCK_TRANSPORT_GRPC_STREAM_LIST_H_
#define PENSTOCK_TRANSPORT_GRPC_STREAM_LIST_H_

namespace penstock {
namespace core {

// A doubly linked list whose links are in the streams, so that adding a call
// allocates no memory. Not thread-safe.
class StreamList {
 public:
  // The base of a stream, which is in at most one list.
  class Node {
   private:
    friend class StreamList;
    Node* previous_ = nullptr;
    Node* next_ = nullptr;
  };

  bool empty() const { return first_ == nullptr; }
  // Requires !empty().
  Node* first() const { return first_; }

  void Add(Node* node) {
    node->previous_ = last_;
    node->next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = node;
    last_ = node;
  }

  void Remove(Node* node) {
    Node* const previous = node->previous_;
    Node* const next = node->next_;
    (previous == nullptr ? first_ : previous->next_) = next;
    (next == nullptr ? last_ : next->previous_) = previous;
  }

  // Calls `function` for each node. `function` must not change the list.
  template <typename Function>
  void ForEach(Function function) const {
    for (Node* node = first_; node != nullptr; node = node->next_) {
      function(node);
    }
  }

 private:
  Node* first_ = nullptr;
  Node* last_ = nullptr;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_STREAM_LIST_H_
