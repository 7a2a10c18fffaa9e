//! Looking at the next call: what a policy sees, what only a critic may, and what every setting takes.

use std::collections::BTreeSet;
use std::sync::Arc;

use dynamiccl_spec::features::Encoder;
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::math::ln;
use dynamiccl_spec::{Choice, Gated, Head, Knobs, Mask, Pair, Path};

use super::PRIVILEGED;
use super::episode::{Episode, Pending};
use crate::gym::Observation;
use crate::model::Conditions;
use crate::question::Question;
use crate::sim::{Launch, Setting, knobs_in, launch};
use crate::world::WeatherState;

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

    /// The next call as a tuner is asked about it; none where the job is done. What NCCL does not tune has no knobs of its
    /// own.
    pub fn question(&self) -> Option<Question> {
        let pending = self.pending.as_ref()?;
        let own = pending.question.gated.own.filter(|_| pending.own.is_some());
        let at = &self.lines.all[pending.line];
        let (nodes, ranks) = at.size();
        Some(Question {
            communicator: pending.line as u32,
            ranks,
            nodes,
            encoder: Arc::clone(at.encoder()),
            call: pending.question.call(),
            gated: Gated { mask: pending.mask, own, ..pending.question.gated },
            past: self.memory.past,
        })
    }

    /// Runs the next call with other knobs, beside the job: the setting with its true time, and what it took.
    /// Nothing where the knobs are not legal.
    pub fn attempt(&mut self, mut knobs: Knobs) -> Option<(Setting, f64)> {
        let Episode { pending, weather, aside, lines, threads, .. } = self;
        let pending = pending.as_ref()?;
        let own = pending.own.filter(|_| pending.mask.decides())?;
        if pending.mask.refuses(&Choice::of(&knobs, own.realised.pair)).is_some() {
            return None;
        }
        knobs.threads = threads.unwrap_or(knobs.threads);
        let at = &lines.all[pending.line];
        let mut setting = at.setting(&pending.question, knobs, at.met()).filter(is_known)?;
        setting.micros += pending.conditions.stall;
        let aside = aside.get_or_insert_with(|| Box::new(weather.each_ref().map(WeatherState::aside)));
        let luck = aside[usize::from(at.crosses)].luck();
        Some((setting, at.measured(&pending.question, &setting, &luck)))
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
            settings.extend(at.setting(&pending.question, knobs, at.met()).filter(is_known).map(stalled));
        }
        settings
    }

    /// What the synthesised schedule of the next call gains over NCCL's own; none where it may not be chosen.
    pub fn schedule_gain(&self) -> Option<f32> {
        let (pending, own) = self.pending.as_ref().and_then(|p| Some((p, p.own?)))?;
        if !pending.question.gated.has_schedule() {
            return None;
        }
        let at = &self.lines.all[pending.line];
        let knobs = Knobs { path: Path::Synthesised, ..own.knobs };
        let micros = at.timed(&pending.question, knobs, own.realised, at.met()).micros;
        let stall = pending.conditions.stall;
        Some((ln(own.micros + stall) - ln(micros + stall)) as f32)
    }

    /// What every choice of pair × channels × chunk gains over NCCL's own, on NCCL's path with threads as chosen (NCCL's
    /// own after the call that chooses them), and ln(NCCL's own time ÷ the predicted time of each pair); none where there
    /// is nothing to choose.
    pub fn gains(&self, chosen: &Choice, into: &mut [f32]) -> Option<[f32; PAIRS]> {
        into.fill(f32::NAN);
        let (pending, own) = self.pending.as_ref().and_then(|p| Some((p, p.own?)))?;
        let at = &self.lines.all[pending.line];
        let stall = pending.conditions.stall;
        let of_own = ln(own.micros + stall);
        let mut known: Vec<(Launch, f32)> = Vec::new();
        for pair in pending.mask.indices(Head::Pair) {
            known.clear();
            for channels in pending.mask.indices(Head::Channels) {
                for chunk in pending.mask.indices(Head::Chunk) {
                    let mut choice = *chosen;
                    if pending.question.gated.has_schedule() {
                        choice.0[Head::Path as usize] = Path::Nccl as u8;
                    }
                    for (head, index) in
                        [(Head::Pair, pair), (Head::Channels, channels), (Head::Chunk, chunk)]
                    {
                        choice.0[head as usize] = index as u8;
                    }
                    let Some(knobs) = choice.knobs() else { continue };
                    let Some(realised) = at.realised(&pending.question, &knobs) else { continue };
                    let id = launch(&knobs, &realised);
                    let gain = known.iter().find(|(same, _)| *same == id).map(|(_, gain)| *gain);
                    let gain = gain.unwrap_or_else(|| {
                        let micros = at.timed(&pending.question, knobs, realised, at.met()).micros;
                        let gain = (of_own - ln(micros + stall)) as f32;
                        known.push((id, gain));
                        gain
                    });
                    let (of_channels, of_chunk) = (Head::Channels.size(), Head::Chunk.size());
                    into[(pair * of_channels + channels) * of_chunk + chunk] = gain;
                }
            }
        }
        let predicted = |at| pending.question.table.get(Pair::from_index(at)?);
        let own = |at| predicted(at).map_or(f32::NAN, |us| (of_own - ln(f64::from(us).max(1e-3))) as f32);
        pending.mask.decides().then(|| std::array::from_fn(own))
    }

    /// Every different launch of the next call with any number of threads, and its true time without own
    /// congestion; the first is NCCL's own. Each has the first of the knobs that give it.
    pub fn truths(&self) -> Vec<Setting> {
        let Some((pending, own)) = self.pending.as_ref().and_then(|p| Some((p, p.own?))) else {
            return Vec::new();
        };
        let mask = self.any_threads(&pending.question);
        let at = &self.lines.all[pending.line];
        let mut known = BTreeSet::from([launch(&own.knobs, &own.realised)]);
        let mut truths = vec![own];
        for knobs in knobs_in(&mask).filter(|_| mask.decides()) {
            let Some(realised) = at.realised(&pending.question, &knobs) else { continue };
            if known.insert(launch(&knobs, &realised)) {
                truths.push(at.timed(&pending.question, knobs, realised, at.met()));
            }
        }
        truths.retain(is_known);
        truths.iter_mut().for_each(|setting| setting.micros += pending.conditions.stall);
        truths
    }
}

/// Whether somebody knows what a setting takes.
fn is_known(setting: &Setting) -> bool {
    !setting.micros.is_nan()
}
