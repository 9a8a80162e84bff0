// Clients that must be closed before the interpreter exits.

#ifndef PENSTOCK_PYTHON_CLOSABLE_H_
#define PENSTOCK_PYTHON_CLOSABLE_H_

#include <memory>

namespace penstock::python {

class Closable {
 public:
  virtual ~Closable() = default;
  // Closes the object. Idempotent. Call it with the GIL.
  virtual void Close() = 0;
};

// Call both functions with the GIL.

// Makes CloseAll() close `object`, if the object is still alive.
void CloseAtExit(const std::shared_ptr<Closable>& object);
void CloseAll();

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CLOSABLE_H_
