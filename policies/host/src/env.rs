//! The env plugin, asked for what NCCL would ask it for (`ncclEnvPlugin_v2` of NCCL 2.30.7).

use std::ffi::{CStr, c_char, c_int};

use serde::{Deserialize, Serialize};

use crate::library::{OpenError, Plugin};
use crate::logger::{self, RawLogger};

#[repr(C)]
struct Table {
    name: *const c_char,
    init: unsafe extern "C" fn(u8, u8, u8, *const c_char, Option<RawLogger>) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    get: unsafe extern "C" fn(*const c_char) -> *const c_char,
}

/// What NCCL gets for the variables that a launch may set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// `NCCL_NTHREADS`.
    pub threads: Option<String>,
    /// `NCCL_BUFFSIZE`.
    pub buffer: Option<String>,
}

/// Asks; nothing where NCCL may not begin.
pub fn handed(plugin: &Plugin) -> Result<Option<Handed>, OpenError> {
    // SAFETY: the layout is NCCL's.
    let table: &Table = unsafe { plugin.table("ncclEnvPlugin_v2") }?;
    // SAFETY: a string, and a log that outlives the plugin.
    let result = unsafe { (table.init)(2, 30, 7, c"".as_ptr(), logger::raw()) };
    if result != 0 {
        return Ok(None);
    }
    let handed = Handed { threads: get(table, c"NCCL_NTHREADS"), buffer: get(table, c"NCCL_BUFFSIZE") };
    // SAFETY: it has begun.
    unsafe { (table.finalize)() };
    Ok(Some(handed))
}

fn get(table: &Table, variable: &CStr) -> Option<String> {
    // SAFETY: a string goes in; null or a string comes out, and stays until the plugin ends.
    let answer = unsafe {
        let answer = (table.get)(variable.as_ptr());
        (!answer.is_null()).then(|| CStr::from_ptr(answer))
    };
    answer.map(|text| text.to_string_lossy().into_owned())
}
