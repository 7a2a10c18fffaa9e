//! The driven mode of the plugin, from the program's side: orders go in, what happened comes out.

use std::ffi::{c_char, c_int};

use dynamiccl_spec::ids::{PAIRS, PROTOCOLS};
use dynamiccl_spec::{ChannelChoice, ChunkChoice, Collective, CostTable, Knobs, Order, Pair};

use crate::library::{OpenError, Plugin};

/// The interface by name.
const INTERFACE: &str = "dynamicclDriver_v1";

#[repr(C)]
struct Table {
    name: *const c_char,
    order: extern "C" fn(u64) -> c_int,
    seen: unsafe extern "C" fn(*mut RawSeen) -> c_int,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawSeen {
    calls: u64,
    refused: u64,
    bytes: u64,
    interface: u32,
    collective: i32,
    pair: i32,
    channels: i32,
    chunk: i32,
    table: [f32; PAIRS],
}

const _: () = assert!(size_of::<RawSeen>() == 128);

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
        let mut raw = RawSeen {
            calls: 0,
            refused: 0,
            bytes: 0,
            interface: 0,
            collective: 0,
            pair: -1,
            channels: 0,
            chunk: 0,
            table: [-1.0; PAIRS],
        };
        // SAFETY: it is laid out as the plugin's own.
        let there = unsafe { (self.table()?.seen)(&mut raw) } == 1;
        Ok(there.then(|| raw.read()).flatten())
    }

    fn table(&self) -> Result<&Table, OpenError> {
        // SAFETY: the layout is the plugin's.
        unsafe { self.0.table(INTERFACE) }
    }
}

impl RawSeen {
    fn read(self) -> Option<Seen> {
        let mut table = CostTable::default();
        let rows = self.table.chunks_exact(PROTOCOLS);
        table.0.iter_mut().zip(rows).for_each(|(to, row)| to.copy_from_slice(row));
        let pair = usize::try_from(self.pair).ok().and_then(Pair::from_index);
        let channels = u8::try_from(self.channels).ok().and_then(ChannelChoice::of).unwrap_or_default();
        let chunk = usize::try_from(self.chunk).ok().and_then(|at| ChunkChoice::ALL.get(at).copied());
        Some(Seen {
            calls: self.calls,
            refused: self.refused,
            interface: self.interface,
            collective: *Collective::TUNED.get(usize::try_from(self.collective).ok()?)?,
            bytes: self.bytes,
            table,
            handed: Knobs { pair, channels, chunk: chunk.unwrap_or_default(), ..Knobs::OWN },
        })
    }
}
