//! One communicator: what is known of it, what was answered, and who decides the rest.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use dynamiccl_policies::shared_memo::SharedMemo;
use dynamiccl_spec::driven::CHUNKS_SINCE;
use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{Bytes, Collective, Decision, Gated, Gates, Head, Knobs, Order, Overrides, Path, Query};

use super::answer::Answer;
use super::call::{Call, KEY};
use super::chunk::Chunks;
use super::decider::Decider;
use super::driven;
use crate::deployment::{Deployment, Schedules};
use crate::float_mode::in_default_mode;
use crate::logger::Logger;
use crate::settings::Mode;

/// Answers that are kept, 128 bytes each. A job makes far fewer different calls on one communicator; one
/// that makes more works some of them out again.
const KEPT: usize = 512;
/// Decisions that are logged.
const LOGGED: u32 = 256;

/// One communicator.
#[derive(Debug)]
pub struct Communicator {
    pub(super) hot: Hot,
    pub(super) logger: Logger,
    pub(super) ranks: u32,
    pub(super) nodes: u32,
    pub(super) encoder: Encoder,
    pub(super) gates: Gates,
    pub(super) overrides: Overrides,
    pub(super) decider: Decider,
    pub(super) schedules: Schedules,
    /// As long as this lives, those that begin are told the same.
    pub(super) _deployment: Arc<Deployment>,
    pub(super) logged: AtomicU32,
    pub(super) warned: AtomicBool,
    pub(super) failed: AtomicBool,
}

/// What every call looks at, in one line of a cache.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Hot {
    mode: Mode,
    /// Whether answers may be kept.
    pure: bool,
    /// Whether the interface asks for chunk sizes. Where it does not, none is chosen: what counts on a chunk that nobody
    /// asks for runs with NCCL's own, and a call writes nothing that others read. Ranks agree on it as they do on a
    /// release, for NCCL lets no two releases into one communicator (`Mismatched NCCL version`, `src/init.cc`).
    chunked: bool,
    /// The version of the interface.
    interface: u8,
    chunks: Chunks,
    memo: SharedMemo<KEY>,
}

const _: () = assert!(size_of::<Hot>() == 64);

impl Hot {
    pub(super) fn new(mode: Mode, pure: bool, interface: u32) -> Self {
        let (chunked, interface) = (interface >= CHUNKS_SINCE, u8::try_from(interface).unwrap_or(u8::MAX));
        Hot { mode, pure, chunked, interface, chunks: Chunks::default(), memo: SharedMemo::new(KEPT) }
    }
}

impl Communicator {
    /// What is done to a call. One that was answered before costs a look; it neither allocates nor locks.
    #[inline]
    pub fn answer(&self, call: &Call) -> Answer {
        if self.hot.mode == Mode::Driven {
            return self.driven(call);
        }
        let answer = self.decided(call);
        if self.hot.mode != Mode::Act {
            return Answer::OWN;
        }
        self.handed(call, answer)
    }

    /// The chunk sizes of what was answered last.
    pub fn chunks(&self) -> &Chunks {
        &self.hot.chunks
    }

    /// A call of this collective is left to NCCL: what was chosen for the one before holds no longer.
    pub fn leave(&self, collective: Option<Collective>) {
        if let Some(collective) = collective {
            self.hot.chunks.note(collective, Answer::OWN);
        }
    }

    /// Says what a user must know, once for a communicator. The text is put together only then: what is warned of may
    /// come with every call.
    pub fn warn_once(&self, text: fmt::Arguments<'_>) {
        if !self.warned.swap(true, Relaxed) {
            self.logger.warn(&text.to_string());
        }
    }

    /// Says that we are at fault, once for a communicator, whatever else was said.
    pub fn fault_once(&self, text: fmt::Arguments<'_>) {
        if !self.failed.swap(true, Relaxed) {
            self.logger.warn(&format!("internal error {text}"));
        }
    }

    #[inline]
    fn decided(&self, call: &Call) -> Answer {
        if self.hot.pure { self.kept(call) } else { self.work_out(call) }
    }

    #[inline]
    fn handed(&self, call: &Call, answer: Answer) -> Answer {
        if self.hot.chunked {
            self.hot.chunks.note(call.collective, answer);
        }
        answer
    }

    /// What was ordered, as far as NCCL's table allows it.
    #[cold]
    #[inline(never)]
    fn driven(&self, call: &Call) -> Answer {
        let order = driven::order();
        let answer = match order {
            Order::Own => Answer::OWN,
            Order::Policy => self.decided(call),
            Order::Knobs { pair, channels, chunk } => {
                let knobs = Knobs { chunk, ..Knobs::with_pair(pair, channels) };
                Answer::new(&knobs, f32::NAN, &call.table, self.nodes)
            }
        };
        driven::note(self.hot.interface.into(), order, call, answer);
        self.handed(call, answer)
    }

    #[inline]
    fn kept(&self, call: &Call) -> Answer {
        let key = call.key();
        if let Some(bits) = self.hot.memo.get(&key) {
            return Answer::of_bits(bits);
        }
        let answer = self.work_out(call);
        self.hot.memo.put(&key, answer.bits());
        answer
    }

    /// Decides, in the arithmetic that all ranks share.
    #[cold]
    #[inline(never)]
    pub(super) fn work_out(&self, call: &Call) -> Answer {
        in_default_mode(|| {
            let Some((call, gated)) = self.narrow(call) else { return Answer::OWN };
            let past = PastCall::default();
            let (ranks, nodes, encoder) = (self.ranks, self.nodes, &self.encoder);
            let known = &call.known;
            let query =
                Query { communicator: 0, ranks, nodes, encoder, call: known, gated: &gated, past: &past };
            let decision = self.decider.decide(&query);
            let micros = decision.knobs.pair.and_then(|pair| decision.micros.get(pair)).unwrap_or(f32::NAN);
            let answer = Answer::new(&decision.knobs, micros, &call.raw.table, nodes);
            self.log(&query, &decision, answer);
            answer
        })
    }

    /// The call with what may be chosen for it; none where it is NCCL's alone. Where NCCL's own pick is
    /// something that we would not look at, we know too little to have a say.
    pub(super) fn narrow(&self, raw: &Call) -> Option<(Narrowed, Gated)> {
        let mut table = raw.table.known.without_priced_out(self.ranks);
        let allowed = self.overrides.mask(raw.collective);
        for (pair, _) in raw.table.known.available().filter(|(pair, _)| !allowed.contains(*pair)) {
            table.set(pair, dynamiccl_spec::table::UNAVAILABLE);
        }
        let (own, micros) = raw.table.known.best()?;
        if table.get(own).is_none() || raw.table.beyond <= micros {
            return None;
        }
        let mut gated = self.gates.narrow(raw.collective, &table);
        // No tuner can set threads.
        gated.mask = gated.mask.only(Head::Threads, 0);
        if !self.hot.chunked {
            gated.mask = gated.mask.only(Head::Chunk, 0);
        }
        let &Call { collective, bytes, pipelined, .. } = raw;
        let known =
            CallContext { collective, bytes, pipelined, table, pairs: gated.mask.pairs(), synthesised: None };
        Some((Narrowed { raw: *raw, known }, gated))
    }

    /// What the policy would take if a runtime could run synthesised schedules: what one is predicted to take,
    /// where it would. Advice alone: NCCL runs none, and no answer depends on it.
    pub(super) fn advised(&self, query: &Query<'_>) -> Option<f32> {
        let &CallContext { collective, bytes, pipelined, .. } = query.call;
        let gated = query.gated.with_schedule();
        if !self.decider.is_pure() || pipelined > 1 || !gated.has_schedule() {
            return None;
        }
        let micros = self.schedules.micros(collective, bytes)?;
        let call = CallContext { synthesised: Some(micros), ..*query.call };
        let decision = self.decider.decide(&Query { call: &call, gated: &gated, ..*query });
        (decision.knobs.path == Path::Synthesised).then_some(micros)
    }

    /// Says what was decided, for the first decisions of a communicator.
    fn log(&self, query: &Query<'_>, decision: &Decision, answer: Answer) {
        let number = self.logged.load(Relaxed);
        if number >= LOGGED {
            return;
        }
        self.logged.store(number + 1, Relaxed);
        let call = query.call;
        // What it takes of its whole table: gates may hold a tuner to fewer pairs.
        let own = call.table.best().map_or("nothing".to_owned(), |(pair, _)| pair.to_string());
        let done = match (self.hot.mode, answer.entry()) {
            (_, None) => "left to NCCL".to_owned(),
            (Mode::Act | Mode::Driven, Some(_)) => answer.to_string(),
            (_, Some(_)) => format!("would be {answer}"),
        };
        let advice = self.advised(query).map_or(String::new(), |micros| {
            format!("; advice: a synthesised schedule would take {micros:.1} us, which stock NCCL cannot run")
        });
        let last = if number + 1 == LOGGED { "; later decisions are not logged" } else { "" };
        self.logger.tuning(&format!(
            "{} {} x{}: NCCL would take {own}; {done} ({}){advice}{last}",
            call.collective,
            Bytes(call.bytes),
            call.pipelined,
            decision.reason
        ));
    }
}

/// A call as NCCL gave it and as a tuner sees it.
pub(super) struct Narrowed {
    raw: Call,
    pub(super) known: CallContext,
}
