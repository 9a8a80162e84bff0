// The bytes of a Python object.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_VIEW_H_
#define PENSTOCK_PYTHON_COLLECTIVES_VIEW_H_

#include <pybind11/pybind11.h>

#include <cstddef>

namespace penstock::python {

// The contiguous bytes of an object with Python's buffer protocol. The object
// cannot free the bytes while a view exists. None has no bytes.
//
// Construct and destroy a view with the GIL.
class View {
 public:
  // Throws the object's own exception if the object provides no such view, for
  // example for bytes that are not contiguous, or for read-only bytes if
  // `writable` is true.
  View(pybind11::handle object, bool writable);
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View();

  // False for None.
  bool exists() const { return buffer_.obj != nullptr; }
  // Returns the bytes. They must not be written unless the view is writable.
  void* data() const { return buffer_.buf; }
  size_t size() const { return static_cast<size_t>(buffer_.len); }

 private:
  Py_buffer buffer_ = {};
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_COLLECTIVES_VIEW_H_
