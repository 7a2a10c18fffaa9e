//! What the functions of all versions do: look behind NCCL's pointers, hand on, and write the result.
//!
//! Every one returns success, whatever it was given, but for a communicator that must not begin.

use std::ffi::{c_int, c_void};

use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

use super::constants::NvlDomains;
use super::guard::guarded;
use super::{INVALID_USAGE, NcclResult, SUCCESS};
use crate::float_mode::in_default_mode;
use crate::logger::{Logger, RawLogger};
use crate::settings::{environment, strict};
use crate::tuner::answer::Answer;
use crate::tuner::call::{Call, Layout, RawTable};
use crate::tuner::communicator::Communicator;
use crate::tuner::opening::{Opened, Opening, forget_unused};

/// What `init` is given. Old interfaces know no communicator's id and no NVLink domains.
pub struct Init {
    /// The version of the interface.
    pub interface: u32,
    /// Where the context goes.
    pub context: *mut *mut c_void,
    /// Ranks.
    pub ranks: usize,
    /// Nodes.
    pub nodes: usize,
    /// NCCL's log.
    pub logger: Option<RawLogger>,
    /// The communicator's id.
    pub id: Option<u64>,
    /// NVLink domains.
    pub domains: *const NvlDomains,
}

/// What `getCollInfo` is given.
pub struct CollInfo {
    /// What `init` made.
    pub context: *mut c_void,
    /// `ncclFunc_t`.
    pub collective: c_int,
    /// Bytes.
    pub bytes: usize,
    /// Operations in the launch.
    pub pipelined: c_int,
    /// The table: numbers in a row, whatever its type says.
    pub table: *mut *mut f32,
    /// Its algorithms.
    pub algorithms: c_int,
    /// Its protocols.
    pub protocols: c_int,
    /// Where channels go.
    pub channels: *mut c_int,
}

/// Begins a communicator.
///
/// # Safety
/// Every pointer is null or as NCCL's headers say.
pub unsafe fn init(given: &Init) -> NcclResult {
    // SAFETY: NCCL's logger lives as long as NCCL.
    let logger = unsafe { Logger::new(given.logger) };
    // SAFETY: null, or NCCL's, for as long as this call lasts.
    let (Some(context), domains) = (unsafe { (given.context.as_mut(), given.domains.as_ref()) }) else {
        return SUCCESS;
    };
    *context = std::ptr::null_mut();
    let work = || {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (ranks, nodes) = (number(given.ranks), number(given.nodes));
        let domains = domains.map(|told| [told.domains, told.fewest, told.most]);
        let opening = Opening { interface: given.interface, ranks, nodes, id: given.id, domains, logger };
        match in_default_mode(|| opening.open(environment)) {
            Opened::Tuned(communicator) => *context = Box::into_raw(communicator).cast(),
            Opened::Alone => forget_unused(),
            Opened::Refused => {
                forget_unused();
                return INVALID_USAGE;
            }
        }
        SUCCESS
    };
    guarded("init", work, || panicked(logger, "tuner"))
}

/// What a panic at the beginning comes to: a rank that cannot begin as its peers do must not begin.
pub fn panicked(logger: Logger, part: &str) -> NcclResult {
    let lenient = !strict(environment);
    let end =
        if lenient { "DYNAMICCL_STRICT=0: NCCL's own" } else { "this rank stops, or its peers would hang" };
    logger.fail(&format!("{part}: internal error at init (a bug of ours): {end}"));
    if lenient { SUCCESS } else { INVALID_USAGE }
}

/// Tunes a call.
///
/// # Safety
/// Every pointer is null or as NCCL's headers say; the context is one that [`init`] made.
#[inline]
pub unsafe fn coll_info(given: &CollInfo) -> NcclResult {
    // SAFETY: null, or what `init` made; NCCL ends no communicator that it uses.
    let Some(communicator) = (unsafe { given.context.cast::<Communicator>().as_ref() }) else {
        return SUCCESS;
    };
    let work = || {
        let (Some(collective), Some(layout)) =
            (tuned(given.collective), Layout::new(given.algorithms, given.protocols))
        else {
            return unknown(communicator, given);
        };
        let table = given.table.cast::<f32>();
        if table.is_null() || !table.is_aligned() {
            return unknown(communicator, given);
        }
        // SAFETY: NCCL's table has as many entries as it says, in one row, and is ours during this call.
        let entries = unsafe { std::slice::from_raw_parts_mut(table, layout.entries()) };
        let pipelined = u32::try_from(given.pipelined).unwrap_or(0);
        let raw = RawTable::read(entries, layout);
        let answer =
            communicator.answer(&Call { collective, bytes: given.bytes as u64, pipelined, table: raw });
        // SAFETY: null, or NCCL's number.
        write(answer, entries, layout, unsafe { given.channels.as_mut() });
    };
    let otherwise = || {
        communicator.leave(tuned(given.collective));
        communicator
            .fault_once(format_args!("while tuning (a bug of ours): NCCL chooses by itself for such calls"));
    };
    guarded("getCollInfo", work, otherwise);
    SUCCESS
}

/// Tells the chunk size of a call that was tuned.
///
/// # Safety
/// As for [`coll_info`].
pub unsafe fn chunk_size(
    context: *mut c_void,
    collective: c_int,
    algorithm: c_int,
    protocol: c_int,
    chunk: *mut usize,
) -> NcclResult {
    // SAFETY: as in `coll_info`.
    let Some(communicator) = (unsafe { context.cast::<Communicator>().as_ref() }) else { return SUCCESS };
    let work = || {
        let algorithm = usize::try_from(algorithm).ok().and_then(Algorithm::from_id);
        let protocol = usize::try_from(protocol).ok().and_then(Protocol::from_id);
        // SAFETY: null, or NCCL's number.
        let chunk = unsafe { chunk.as_mut() };
        if let (Some(collective), Some(algorithm), Some(protocol), Some(chunk)) =
            (tuned(collective), algorithm, protocol, chunk)
        {
            *chunk = communicator.chunks().size(collective, Pair::new(algorithm, protocol), *chunk);
        }
    };
    let otherwise = || {
        communicator.fault_once(format_args!("at getChunkSize (a bug of ours): chunks stay NCCL's"));
    };
    guarded("getChunkSize", work, otherwise);
    SUCCESS
}

/// Looks on at a call of an interface that has no table to write into.
///
/// # Safety
/// As for [`coll_info`].
pub unsafe fn observe(context: *mut c_void, collective: c_int) -> NcclResult {
    // SAFETY: as in `coll_info`.
    let Some(communicator) = (unsafe { context.cast::<Communicator>().as_ref() }) else { return SUCCESS };
    let work = || {
        if tuned(collective).is_none() {
            communicator
                .warn_once(format_args!("collective {collective} is unknown: NCCL chooses by itself"));
        }
    };
    let otherwise = || communicator.fault_once(format_args!("while observing (a bug of ours)"));
    guarded("getCollInfo", work, otherwise);
    SUCCESS
}

/// Ends a communicator.
///
/// # Safety
/// The context is null or one that [`init`] made, and nobody uses it any more.
pub unsafe fn cleanup(context: *mut c_void) -> NcclResult {
    let work = || {
        if !context.is_null() {
            // SAFETY: `init` made it of a box, and NCCL ends it once.
            drop(unsafe { Box::from_raw(context.cast::<Communicator>()) });
            forget_unused();
        }
    };
    guarded("cleanup", work, || {});
    SUCCESS
}

/// The collective with this id of NCCL's, if it is one that NCCL tunes.
#[inline]
fn tuned(id: c_int) -> Option<Collective> {
    Collective::TUNED.get(usize::try_from(id).ok()?).copied()
}

/// Writes an answer; what it does not speak of stays.
#[inline]
fn write(answer: Answer, entries: &mut [f32], layout: Layout, channels: Option<&mut c_int>) {
    let Some((pair, micros)) = answer.entry() else { return };
    let Some(entry) = layout.position(pair).and_then(|at| entries.get_mut(at)) else { return };
    *entry = micros;
    if let (Some(asked), Some(channels)) = (answer.channels(), channels) {
        *channels = asked;
    }
}

#[cold]
fn unknown(communicator: &Communicator, given: &CollInfo) {
    let CollInfo { collective, algorithms, protocols, .. } = given;
    communicator.leave(tuned(*collective));
    communicator.warn_once(format_args!(
        "collective {collective} with a table of {algorithms} x {protocols} is unknown: NCCL chooses by itself for \
         such calls"
    ));
}
