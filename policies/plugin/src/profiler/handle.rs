//! Handles that NCCL keeps for us between the start and the stop of an event.
//!
//! A handle is a number and never a pointer: whatever comes back, stale, foreign or made up, can be looked
//! at without touching memory that is not ours. Zero, which NCCL reads as "no event", is no handle.

/// The largest number of slots that a handle can name.
pub const SLOTS_MAX: usize = 1 << 16;
/// Channels that NCCL can use for one collective.
pub const CHANNELS_MAX: u8 = 64;

const KIND_SHIFT: u32 = 62;
const CHANNEL_SHIFT: u32 = 56;
const SLOT_SHIFT: u32 = 40;
const TURN_MASK: u64 = (1 << SLOT_SHIFT) - 1;

/// A collective that is being recorded: its slot, and which use of the slot it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The slot.
    pub slot: u16,
    turn: u64,
}

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handle {
    /// A group. Old NCCL asks for collectives only inside groups that have a handle, and new NCCL
    /// numbers the replays of a CUDA graph only then.
    Group,
    /// A collective.
    Collective(Ticket),
    /// The kernel of a collective on one channel.
    Kernel(Ticket, u8),
}

impl Ticket {
    /// The use of a slot; turns count up and wrap after 2⁴⁰ uses of one slot.
    pub fn new(slot: u16, turn: u64) -> Self {
        Ticket { slot, turn: turn & TURN_MASK }
    }

    /// Whether it is this use of the slot.
    pub fn is_turn(self, turn: u64) -> bool {
        self.turn == turn & TURN_MASK
    }

    fn bits(self) -> u64 {
        u64::from(self.slot) << SLOT_SHIFT | self.turn
    }
}

impl Handle {
    /// The number that NCCL keeps; never zero.
    pub fn to_bits(self) -> u64 {
        match self {
            Handle::Group => 1 << KIND_SHIFT,
            Handle::Collective(ticket) => 2 << KIND_SHIFT | ticket.bits(),
            Handle::Kernel(ticket, channel) => {
                3 << KIND_SHIFT | u64::from(channel % CHANNELS_MAX) << CHANNEL_SHIFT | ticket.bits()
            }
        }
    }

    /// What a number stands for, if for anything.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let ticket = Ticket::new((bits >> SLOT_SHIFT) as u16, bits);
        match bits >> KIND_SHIFT {
            1 => Some(Handle::Group),
            2 => Some(Handle::Collective(ticket)),
            3 => Some(Handle::Kernel(ticket, (bits >> CHANNEL_SHIFT) as u8 % CHANNELS_MAX)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_back_and_is_never_zero() {
        let last = Ticket::new(u16::MAX, u64::MAX);
        let first = Ticket::new(0, 0);
        for handle in [
            Handle::Group,
            Handle::Collective(first),
            Handle::Collective(last),
            Handle::Kernel(first, 0),
            Handle::Kernel(last, 63),
            Handle::Kernel(Ticket::new(300, 1 << 39), 17),
        ] {
            assert_ne!(handle.to_bits(), 0);
            assert_eq!(Handle::from_bits(handle.to_bits()), Some(handle));
        }
    }

    #[test]
    fn zero_and_what_a_pointer_looks_like_are_no_handles() {
        for bits in [0, 8, 0x7fff_ffff_f000, 0x0000_5555_5555_5000] {
            assert_eq!(Handle::from_bits(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn a_turn_is_told_from_the_next() {
        let ticket = Ticket::new(3, 7);
        assert!(ticket.is_turn(7) && !ticket.is_turn(8));
        assert!(ticket.is_turn(7 + (1 << 40)), "turns wrap");
    }
}
