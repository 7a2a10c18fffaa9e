//! NCCL's C strings.

use std::ffi::{CStr, c_char};

/// The bytes of a C string; none of a null one.
///
/// # Safety
/// It is null, or ends with a zero and stays for as long as the result is used.
pub unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}
