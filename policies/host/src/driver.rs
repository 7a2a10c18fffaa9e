//! The driven mode of the plugin, from the program's side: orders go in, what happened comes out.

use std::ffi::{c_char, c_int};

use dynamiccl_spec::driven::{DRIVER, RawSeen};
use dynamiccl_spec::ids::PROTOCOLS;
use dynamiccl_spec::{ChannelChoice, ChunkChoice, Collective, CostTable, Knobs, Order, Pair};

use crate::library::{OpenError, Plugin};

#[repr(C)]
struct Table {
    name: *const c_char,
    order: extern "C" fn(u64) -> c_int,
    seen: unsafe extern "C" fn(*mut RawSeen) -> c_int,
}

/// What has happened since the last order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Calls that NCCL asked about.
    pub calls: u64,
    /// Those that could not get what was ordered.
    pub refused: u64,
    /// The version of NCCL's interface.
    pub interface: u32,
    /// The last call.
    pub collective: Collective,
    /// Its bytes.
    pub bytes: u64,
    /// NCCL's own table of it.
    pub table: CostTable,
    /// What was handed over; NCCL's own where nothing was.
    pub handed: Knobs,
}

/// The plugin in this process, ready for orders.
#[derive(Debug)]
pub struct Driver(Plugin);

impl Driver {
    /// Drives a plugin. NCCL must load it from the same file.
    pub fn new(plugin: Plugin) -> Result<Self, OpenError> {
        let driver = Driver(plugin);
        driver.table()?;
        Ok(driver)
    }

    /// Gives an order.
    pub fn order(&self, order: Order) -> Result<(), OpenError> {
        match (self.table()?.order)(order.bits()) {
            1 => Ok(()),
            _ => Err(OpenError::Lacks(format!("order {order:?}"))),
        }
    }

    /// What has happened since; nothing without a call, or with a plugin that is not in the driven mode.
    pub fn seen(&self) -> Result<Option<Seen>, OpenError> {
        let mut raw = RawSeen::NOTHING;
        // SAFETY: it is laid out as the plugin's own.
        let there = unsafe { (self.table()?.seen)(&mut raw) } == 1;
        Ok(there.then(|| read(&raw)).flatten())
    }

    fn table(&self) -> Result<&Table, OpenError> {
        // SAFETY: the layout is the plugin's.
        unsafe { self.0.table(DRIVER) }
    }
}

fn read(raw: &RawSeen) -> Option<Seen> {
    let mut table = CostTable::default();
    let rows = raw.table.chunks_exact(PROTOCOLS);
    table.0.iter_mut().zip(rows).for_each(|(to, row)| to.copy_from_slice(row));
    let pair = usize::try_from(raw.pair).ok().and_then(Pair::from_index);
    let channels = u8::try_from(raw.channels).ok().and_then(ChannelChoice::of).unwrap_or_default();
    let chunk = usize::try_from(raw.chunk).ok().and_then(|at| ChunkChoice::ALL.get(at).copied());
    Some(Seen {
        calls: raw.calls,
        refused: raw.refused,
        interface: raw.interface,
        collective: *Collective::TUNED.get(usize::try_from(raw.collective).ok()?)?,
        bytes: raw.bytes,
        table,
        handed: Knobs { pair, channels, chunk: chunk.unwrap_or_default(), ..Knobs::OWN },
    })
}
