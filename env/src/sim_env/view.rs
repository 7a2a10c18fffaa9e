//! Looking at the next call: what a policy sees, what only a critic may, and what every setting takes.

use dynamiccl_spec::Mask;
use dynamiccl_spec::features::Encoder;
use dynamiccl_spec::math::ln;

use super::PRIVILEGED;
use super::episode::{Episode, Pending};
use crate::gym::Observation;
use crate::sim::{Setting, knobs_in};
use crate::world::Conditions;

impl Episode {
    /// Writes what is seen before the next call; nothing where the job is done.
    pub fn observe(&self, into: &mut Observation) {
        let Some(pending) = &self.pending else {
            for numbers in [&mut into.context, &mut into.history, &mut into.privileged] {
                numbers.fill(0.0);
            }
            (into.mask, into.decides) = (Mask::FIRST.all_bits(), false);
            return;
        };
        let at = &self.lines.all[pending.line];
        into.context.copy_from_slice(at.written());
        let history = (&mut *into.history).try_into().expect("as wide as the spaces say");
        Encoder::history(&self.memory.past, history);
        into.privileged.copy_from_slice(&self.privileged(pending));
        (into.mask, into.decides) = (pending.mask.all_bits(), pending.mask.decides());
    }

    fn privileged(&self, pending: &Pending) -> [f32; PRIVILEGED.len()] {
        let Conditions { load, speed, nics, latency, bandwidth, .. } = pending.conditions;
        let predicted = pending.own.and_then(|own| pending.question.table.get(own.realised.pair));
        let ratio = match (pending.own, predicted) {
            (Some(own), Some(predicted)) => ln(own.micros / f64::from(predicted).max(1e-3)) / 8.0,
            _ => 0.0,
        };
        let signed = |x: f64| x.clamp(-1.0, 1.0) as f32;
        [load, speed, nics, latency / 2.0, bandwidth, self.congestion.level(), ratio].map(signed)
    }

    /// Every legal setting of the next call with its true time, without own congestion; the first is
    /// NCCL's own. Empty where there is nothing to tune.
    pub fn settings(&mut self) -> Vec<Setting> {
        let Some(pending) = self.pending else { return Vec::new() };
        let Some(own) = pending.own else { return Vec::new() };
        let at = &mut self.lines.all[pending.line];
        let threads = self.threads;
        let stalled =
            |setting: Setting| Setting { micros: setting.micros + pending.conditions.stall, ..setting };
        let mut settings = vec![stalled(own)];
        for mut knobs in knobs_in(&pending.mask) {
            knobs.threads = threads.unwrap_or(knobs.threads);
            settings.extend(at.setting(&pending.question, knobs, at.met()).map(stalled));
        }
        settings
    }
}
