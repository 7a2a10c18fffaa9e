//! The proof that a run never asked more of a link than it carries: flows added up over time.
//!
//! It is the executor that it proves, whatever the schedule: tests hold the executor to it, and no command runs a schedule
//! once more for it.

use std::collections::HashMap;

use crate::connections::Resource;
use crate::execute::Flow;
use crate::machine::Machine;
use crate::sketch::Sketch;

/// Share by which sums of rounded rates may exceed a rate.
const ROUNDING: f64 = 1e-6;

/// A moment at which more flows than fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overload {
    /// Where.
    pub resource: Resource,
    /// When, µs.
    pub at: f64,
    /// GB/s that flow.
    pub flows: f64,
    /// GB/s that fit.
    pub fits: f64,
}

/// Proves that flows fit, or gives the first moment at which they do not.
pub fn verify(machine: &Machine, sketch: &Sketch, flows: &[Flow]) -> Result<(), Overload> {
    let mut changes: HashMap<Resource, Vec<(f64, f64)>> = HashMap::new();
    for flow in flows {
        for resource in Resource::of(machine, sketch, flow.from, flow.to) {
            let changes = changes.entry(resource).or_default();
            changes.extend([(flow.start, flow.rate), (flow.end, -flow.rate)]);
        }
    }
    let mut worst: Option<Overload> = None;
    for (resource, mut changes) in changes {
        // What ends makes room for what begins at the same time.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (fits, mut flows) = (resource.rate(machine), 0.0);
        for (at, change) in changes {
            flows += change;
            let earlier = worst.is_none_or(|worst| (at, resource) < (worst.at, worst.resource));
            if flows > fits * (1.0 + ROUNDING) && earlier {
                worst = Some(Overload { resource, at, flows, fits });
                break;
            }
        }
    }
    worst.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Mode;
    use dynamiccl_env::cluster::Cluster;

    #[test]
    fn flows_that_exceed_a_nic_are_found_at_their_moment() {
        let machine = Machine::from_cluster(&Cluster::load("aws_p4d").unwrap(), 2, 8).unwrap();
        let sketch = Sketch::new(&machine, Mode::Pair);
        let flow = |from, start, rate| Flow { from, to: from + 8, chunk: 0, start, end: start + 10.0, rate };
        let nic = machine.nics[0].rate;
        // Ranks 0 and 1 share the first NIC.
        assert_eq!(verify(&machine, &sketch, &[flow(0, 0.0, 0.6 * nic), flow(1, 10.0, 0.6 * nic)]), Ok(()));
        let over =
            verify(&machine, &sketch, &[flow(0, 0.0, 0.6 * nic), flow(1, 9.0, 0.6 * nic)]).unwrap_err();
        assert_eq!((over.resource, over.at), (Resource::NicOut(0), 9.0));
    }
}
