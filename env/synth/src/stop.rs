//! Whether somebody wants the work to end: a schedule of thousands of ranks takes minutes, and whoever waits for it may not
//! want to.

/// Asked by long work; says true once it is to end.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Nobody ends it.
pub const NEVER: Stop<'static> = &|| false;

/// Turns of a loop between two questions: asking may cost more than a turn.
const EVERY: u32 = 256;

/// The turns of a loop that somebody may end.
pub(crate) struct Turns<'a> {
    stop: Stop<'a>,
    turn: u32,
}

impl<'a> Turns<'a> {
    /// None so far.
    pub(crate) fn new(stop: Stop<'a>) -> Self {
        Turns { stop, turn: 0 }
    }

    /// Whether this turn is not to be made.
    #[inline]
    pub(crate) fn ends(&mut self) -> bool {
        let asks = self.turn.is_multiple_of(EVERY);
        self.turn = self.turn.wrapping_add(1);
        asks && (self.stop)()
    }
}
