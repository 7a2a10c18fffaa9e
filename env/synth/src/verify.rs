//! The proof that a schedule does what its collective promises, by who has contributed to what.
//!
//! Every rank's value of every chunk is the set of ranks that are in it. Nothing here knows how a schedule
//! came about, so that a bad one is found whoever made it.

use std::collections::HashSet;
use std::fmt;

use dynamiccl_spec::Collective;

use crate::bits::Bits;
use crate::schedule::{Phase, Schedule, Send};
use crate::sketch::Sketch;

/// What a schedule must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Ranks and chunks exist, and nobody sends to itself.
    Known,
    /// Sends go over links of the sketch.
    Link,
    /// A rank sends only what it has.
    Has,
    /// Only collectives that reduce add.
    Reduces,
    /// A partial result is sent once.
    SentOnce,
    /// Nothing is added to what has been sent on.
    NotConsumed,
    /// No contribution is added twice.
    AddedOnce,
    /// Only complete chunks are placed.
    Complete,
    /// A rank gets a complete chunk once.
    PlacedOnce,
    /// In the end every rank has what the collective promises.
    Result,
}

impl Rule {
    /// What the rule says.
    pub const fn says(self) -> &'static str {
        match self {
            Rule::Known => "ranks and chunks exist, and nobody sends to itself",
            Rule::Link => "sends go over links of the sketch",
            Rule::Has => "a rank sends only what it has",
            Rule::Reduces => "only collectives that reduce add",
            Rule::SentOnce => "a partial result is sent once",
            Rule::NotConsumed => "nothing is added to what has been sent on",
            Rule::AddedOnce => "no contribution is added twice",
            Rule::Complete => "only complete chunks are placed",
            Rule::PlacedOnce => "a rank gets a complete chunk once",
            Rule::Result => "in the end every rank has what the collective promises",
        }
    }
}

/// The first rule that a schedule breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The rank at which it shows.
    pub rank: u32,
    /// The chunk.
    pub chunk: u32,
    /// The send, by its number; none where it shows in the end only.
    pub send: Option<u32>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, chunk {}, ", self.rank, self.chunk)?;
        match self.send {
            Some(send) => write!(f, "send {send}: {}", self.rule.says()),
            None => write!(f, "at the end: {}", self.rule.says()),
        }
    }
}

impl std::error::Error for Violation {}

/// Proves a schedule, or gives the first rule that it breaks.
pub fn verify(schedule: &Schedule, sketch: &Sketch) -> Result<(), Violation> {
    let mut state = State::new(schedule);
    for (send, number) in schedule.sends.iter().zip(0..) {
        let at = |(rule, rank): (Rule, u32)| Violation { rule, rank, chunk: send.chunk, send: Some(number) };
        if !state.known(send) {
            return Err(at((Rule::Known, send.from)));
        }
        if !sketch.has(send.from, send.to) {
            return Err(at((Rule::Link, send.from)));
        }
        state.step(send).map_err(at)?;
    }
    state.finish()
}

struct State<'a> {
    schedule: &'a Schedule,
    total: usize,
    /// Contributors, by rank and chunk.
    values: Bits,
    sent: Bits,
    placed: HashSet<(u32, u32)>,
}

impl<'a> State<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let (ranks, total) = (schedule.ranks as usize, schedule.total_chunks() as usize);
        let mut values = Bits::new(ranks * total, ranks);
        let starts = schedule.starts();
        for rank in 0..ranks {
            for chunk in 0..total {
                if schedule.collective.reduces() || starts.has(rank, chunk) {
                    values.set(rank * total + chunk, rank);
                }
            }
        }
        State { schedule, total, values, sent: Bits::new(ranks, total), placed: HashSet::new() }
    }

    fn known(&self, send: &Send) -> bool {
        let ranks = self.schedule.ranks;
        send.from < ranks && send.to < ranks && send.from != send.to && (send.chunk as usize) < self.total
    }

    fn row(&self, rank: u32, chunk: u32) -> usize {
        rank as usize * self.total + chunk as usize
    }

    /// How many contributors a complete chunk has.
    fn complete(&self) -> usize {
        if self.schedule.collective.reduces() { self.schedule.ranks as usize } else { 1 }
    }

    fn step(&mut self, send: &Send) -> Result<(), (Rule, u32)> {
        let (from, to) = (self.row(send.from, send.chunk), self.row(send.to, send.chunk));
        if self.values.count(from) == 0 {
            return Err((Rule::Has, send.from));
        }
        match send.phase {
            Phase::Reduce => {
                if !self.schedule.collective.reduces() {
                    return Err((Rule::Reduces, send.to));
                }
                if self.sent.has(send.from as usize, send.chunk as usize) {
                    return Err((Rule::SentOnce, send.from));
                }
                if self.sent.has(send.to as usize, send.chunk as usize) {
                    return Err((Rule::NotConsumed, send.to));
                }
                if self.values.meet(from, to) {
                    return Err((Rule::AddedOnce, send.to));
                }
                self.sent.set(send.from as usize, send.chunk as usize);
            }
            Phase::Gather => {
                if self.values.count(from) != self.complete() {
                    return Err((Rule::Complete, send.from));
                }
                let first = self.placed.insert((send.to, send.chunk));
                if !first || self.values.count(to) == self.complete() {
                    return Err((Rule::PlacedOnce, send.to));
                }
            }
        }
        self.values.join(to, from);
        Ok(())
    }

    fn finish(&self) -> Result<(), Violation> {
        let everywhere = !matches!(self.schedule.collective, Collective::ReduceScatter | Collective::Reduce);
        for rank in 0..self.schedule.ranks {
            for chunk in 0..self.schedule.total_chunks() {
                let wanted = everywhere || self.schedule.owner(chunk) == rank;
                if wanted && self.values.count(self.row(rank, chunk)) != self.complete() {
                    return Err(Violation { rule: Rule::Result, rank, chunk, send: None });
                }
            }
        }
        Ok(())
    }
}
