// Clients that are to be closed before the interpreter ends.

#ifndef PENSTOCK_PYTHON_CLOSABLE_H_
#define PENSTOCK_PYTHON_CLOSABLE_H_

#include <memory>

namespace penstock::python {

class Closable {
 public:
  virtual ~Closable() = default;
  // May be called again, and then does nothing. Call it with the GIL.
  virtual void Close() = 0;
};

// Call both with the GIL.

// Has CloseAll() close `object`, if it lives then.
void CloseAtExit(const std::shared_ptr<Closable>& object);
void CloseAll();

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CLOSABLE_H_
