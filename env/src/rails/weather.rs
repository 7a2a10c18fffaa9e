//! How one iteration differs from the profiled one: compute that takes longer or shorter, and calls that the
//! profile does not hold.

use rand_chacha::ChaCha8Rng;

use super::graph::{Axis, Graph, Work};
use super::profile::Profile;
use super::timing::Jitter;
use crate::world::draw::uniform;

/// Uniform numbers whose sum stands for a normal one: twelve have a variance of 1.
const SUMMANDS: usize = 12;
/// The shortest that a piece of compute can be, as a share of the profiled one.
const SHORTEST: f64 = 0.25;

/// One iteration's own times.
#[derive(Debug, Clone, PartialEq)]
pub struct Weather {
    /// µs of each piece of compute; 0 for calls.
    pub compute: Vec<f64>,
    /// Whether a call that the profile does not hold comes before each request, on its first stage.
    pub surprises: Vec<bool>,
}

impl Weather {
    /// The profiled iteration itself.
    pub fn calm(graph: &Graph, profile: &Profile) -> Weather {
        let micros = |work: &Work| if let Work::Compute(micros) = work { *micros } else { 0.0 };
        Weather {
            compute: graph.ops.iter().map(|op| micros(&op.work)).collect(),
            surprises: vec![false; profile.requests.len()],
        }
    }

    /// An iteration that varies so much.
    pub fn draw(graph: &Graph, profile: &Profile, jitter: &Jitter, rng: &mut ChaCha8Rng) -> Weather {
        let mut weather = Weather::calm(graph, profile);
        if jitter.compute > 0.0 {
            for micros in &mut weather.compute {
                *micros *= (1.0 + jitter.compute * normal(rng)).max(SHORTEST);
            }
        }
        for stage in 0..graph.stages as u8 {
            let (comes, place) = (uniform(rng) < jitter.surprise, uniform(rng));
            let places = places(graph, profile, stage);
            if comes && !places.is_empty() {
                let at = ((place * places.len() as f64) as usize).min(places.len() - 1);
                weather.surprises[places[at]] = true;
            }
        }
        weather
    }
}

/// Requests before which a stage can make another call: those whose first stage it is, but for what all stages
/// do together.
fn places(graph: &Graph, profile: &Profile, stage: u8) -> Vec<usize> {
    let own = |at: &usize| {
        let call = graph.call(profile.requests[*at].ops[0] as usize);
        call.is_some_and(|call| {
            call.stages[0] == stage && (call.axis == Axis::Data || call.stages.len() == 2)
        })
    };
    (0..profile.requests.len()).filter(own).collect()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..SUMMANDS).map(|_| uniform(rng)).sum::<f64>() - SUMMANDS as f64 / 2.0
}
