//! Tuners that learn inside a job: every call of a kind is a trial of its search until the search is over.
//! MRACO alone searches before the first call of a kind, as its authors do, with calls beside the job's own.
//!
//! What they find depends only on what every rank was told, so all ranks choose alike (AutoCCL gets there
//! by a leader that decides for all). They see a call through its query and know no time but those that
//! they are told. The first calls of a kind run with NCCL's own knobs, to have something to compare with;
//! where nobody tells them a time, that is all that ever happens.

mod kind;
mod method;
mod recent;

use dynamiccl_spec::{Decision, Fallback, Measure, Measured, Query, Reason, Tuner};

use crate::kinds::{ByKey, Key};
use crate::random::Random;
use crate::roster;
use kind::{Kind, Next};
pub use method::Method;

/// A search that runs on the calls of a job.
pub struct Online {
    method: &'static Method,
    seed: u64,
    kinds: ByKey<Kind>,
    /// Whether a search before the job's calls has found that nobody measures.
    unmeasured: bool,
}

/// The tuners of this module.
pub const ROSTER: &[roster::Entry] = &[
    roster::Entry { name: method::MRACO.name, make: |seed| Box::new(Online::new(&method::MRACO, seed)) },
    roster::Entry {
        name: method::MRACO_ONLINE.name,
        make: |seed| Box::new(Online::new(&method::MRACO_ONLINE, seed)),
    },
    roster::Entry { name: method::TPE.name, make: |seed| Box::new(Online::new(&method::TPE, seed)) },
    roster::Entry {
        name: method::COORDINATE.name,
        make: |seed| Box::new(Online::new(&method::COORDINATE, seed)),
    },
    roster::Entry { name: method::BANDIT.name, make: |seed| Box::new(Online::new(&method::BANDIT, seed)) },
    roster::Entry { name: method::EPSILON.name, make: |seed| Box::new(Online::new(&method::EPSILON, seed)) },
    roster::Entry { name: method::GRID.name, make: |seed| Box::new(Online::new(&method::GRID, seed)) },
    roster::Entry {
        name: method::RANDOM_SEARCH.name,
        make: |seed| Box::new(Online::new(&method::RANDOM_SEARCH, seed)),
    },
];

impl Online {
    /// A tuner that searches with this method; the seed decides whatever it draws.
    pub fn new(method: &'static Method, seed: u64) -> Self {
        Online { method, seed, kinds: ByKey::default(), unmeasured: false }
    }

    /// The seed of a kind's search.
    fn seed_of(&self, key: &Key) -> u64 {
        Random::of(self.seed, key.number()).bits()
    }

    /// Searches with calls beside the job's own. A search begins with NCCL's own knobs, which always run: where
    /// even those get no time, nobody measures. After that, what gets none cannot run.
    fn search_before(&mut self, query: &Query<'_>, measure: &mut Measure<'_>) {
        let key = Key::of(query);
        let Some(mut kind) = Kind::new(query, self.method, self.seed_of(&key)) else { return };
        let mut answered = false;
        while let Some(knobs) = kind.trial() {
            let micros = measure(&knobs);
            answered |= micros.is_some();
            if !answered {
                self.unmeasured = true;
                return;
            }
            kind.learn(&knobs, micros.unwrap_or(f64::INFINITY), self.method);
        }
        self.kinds.insert(key, kind);
    }
}

impl Tuner for Online {
    fn name(&self) -> &str {
        self.method.name
    }

    fn begin(&mut self) {
        self.kinds.clear();
        self.unmeasured = false;
    }

    fn decide(&mut self, query: &Query<'_>, measure: &mut Measure<'_>) -> Decision {
        if let Some(settled) = query.settled() {
            return settled;
        }
        if self.method.before && !self.unmeasured && !self.kinds.contains_key(&Key::of(query)) {
            self.search_before(query, measure);
        }
        let Some(kind) = self.kinds.get_mut(&Key::of(query)) else {
            return Decision::fallback(query, Fallback::Unmeasured);
        };
        let Next { knobs, exploratory } = kind.next();
        match query.gated.pass(&knobs) {
            (knobs, None) => Decision { exploratory, ..Decision::chosen(query, knobs) },
            // The mask is not what it was when the search began.
            (knobs, Some(gate)) => Decision { reason: Reason::Gate(gate), ..Decision::chosen(query, knobs) },
        }
    }

    fn learn(&mut self, query: &Query<'_>, measured: &Measured) {
        let key = Key::of(query);
        // A kind is looked up once: this is done at every call.
        if let Some(kind) = self.kinds.get_mut(&key) {
            kind.learn(&measured.knobs, measured.micros, self.method);
            return;
        }
        if self.method.before || query.settled().is_some() {
            return;
        }
        if let Some(mut kind) = Kind::new(query, self.method, self.seed_of(&key)) {
            kind.learn(&measured.knobs, measured.micros, self.method);
            self.kinds.insert(key, kind);
        }
    }
}
