//! What somebody who decides can see: prospects on the links as they were seen, and the job so far.

use crate::gym::Observation;
use crate::wan::arrangement::Work;
use crate::wan::env::features;
use crate::wan::traffic::Sample;
use crate::wan::{Arrangement, Operation, Prospect, Setting};

/// What can be seen before a collective.
#[derive(Debug)]
pub struct View<'a> {
    /// What stays the same.
    pub setting: &'a Setting,
    /// The job so far.
    pub operation: &'a Operation,
    /// What each move would lead to.
    pub prospect: &'a Prospect,
    /// The links as they were seen.
    pub seen: &'a Sample,
    /// The best ring and routes for these links.
    pub best: &'a Arrangement,
    /// How alike links have been from one collective to the next, −1 to 1.
    pub correlation: f64,
    /// Collectives after which links are seen.
    pub lag: usize,
    /// Room to work out times in.
    pub work: &'a mut Work,
}

impl View<'_> {
    /// The same as numbers, as a policy learns from them: word for word what the environment observes, but for
    /// what only a critic may see.
    pub fn observe(&mut self, into: &mut Observation) {
        features::write(self, into);
    }
}
