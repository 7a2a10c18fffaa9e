//! NCCL's knobs: what a call runs with, in the simulator.

use std::sync::Arc;

use dynamiccl_env::cluster::ClusterError;
use dynamiccl_env::curriculum::{Curriculum, Kind, Promotion, Stage};
use dynamiccl_env::evaluate::{self, Entrant, Evaluation, Machine, NODES, Report};
use dynamiccl_env::headroom;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::schedules::Schedules;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::Weights;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::GateSet;
use dynamiccl_spec::gates::Gate;

use super::map::Maps;
use super::{ByPlace, Figures, Look, StageSettings, Stop, Subject, Verdict};
use crate::config::Config;
use crate::wide::WideTuner;

/// A curriculum of NCCL's knobs.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// What is learned.
    pub curriculum: Curriculum,
    /// Constants of the model.
    pub constants: Arc<ConstantsFile>,
    /// Who makes schedules for the jobs that have a runtime for them.
    pub schedules: Option<Arc<dyn Schedules>>,
}

impl Subject for Knobs {
    type Stage = Arc<Stage>;
    type Env = SimEnv;
    type Verdict = Report;

    const KIND: Kind = Kind::Knobs;
    const WATCHED: &'static str = "regret";

    fn stages(&self) -> Vec<Arc<Stage>> {
        self.curriculum.stages.clone()
    }

    fn name(stage: &Arc<Stage>) -> &str {
        &stage.name
    }

    fn promotion(stage: &Arc<Stage>) -> Promotion {
        stage.file.promotion
    }

    fn usual(&self) -> Config {
        Config::default()
    }

    fn settings(&self) -> Vec<StageSettings> {
        let of = |stage: &Arc<Stage>| StageSettings::new(&stage.name, &(stage, &self.constants), &stage.file);
        self.curriculum.stages.iter().map(of).collect()
    }

    fn surroundings(&self) -> (Vec<String>, GateSet) {
        let releases = self.curriculum.stages.iter().flat_map(|stage| stage.file.regime.nccl.iter());
        let mut nccl: Vec<String> = releases.map(|(release, _)| release.to_string()).collect();
        nccl.sort();
        nccl.dedup();
        (nccl, Gate::ALL.iter().fold(GateSet::default(), |gates, &gate| gates.with(gate)))
    }

    fn make(&self, stages: &[Arc<Stage>], config: &Config) -> impl Fn() -> SimEnv {
        let (stages, constants) = (stages.to_vec(), Arc::clone(&self.constants));
        let (untold, schedules) = (config.without.feedback, self.schedules.clone());
        move || {
            let env = SimEnv::mixed(stages.iter().cloned(), Arc::clone(&constants));
            let env = match &schedules {
                Some(schedules) => env.with_schedules(Arc::clone(schedules)),
                None => env,
            };
            if untold { env.untold() } else { env }
        }
    }

    /// On the machines of the stage, as their files say them to be.
    fn judge<E: Stop>(
        &self,
        stage: &Arc<Stage>,
        weights: &Weights,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<Report, E> {
        let machines = machines(stage)?;
        let evaluation = Evaluation {
            seed: look.seed,
            seeds: 1,
            worlds: look.worlds,
            threads: look.threads,
            constants: &self.constants,
            // Bars are NCCL's: a schedule would move them.
            schedules: None,
        };
        // As it will be deployed; but notes would find good knobs for a network that has learned nothing.
        let guard = Guard::Spreads(look.config.evaluation.margin);
        let policy = Arc::new(Policy::new("policy", weights, guard, 0));
        let refresh = (!look.config.without.lstm).then_some(PolicyTuner::REFRESH);
        let entrant = Entrant::tuner("policy", move |_| {
            Box::new(WideTuner(PolicyTuner::new(Arc::clone(&policy), refresh).without_notes()))
        });
        evaluation.cells(&machines, &headroom::sizes(), &[entrant], || step(1))
    }

    fn maps(stage: &Arc<Stage>) -> Option<Maps> {
        Some(Maps::new(stage))
    }
}

/// The machines of a stage, of its tiers: none of them is held out there, whoever made its file. Where all are moved to
/// other tiers than their files say, those of its tiers that some curriculum contains.
fn machines(stage: &Stage) -> Result<Vec<Machine>, ClusterError> {
    let names: Vec<String> = stage.file.clusters.iter().map(|machines| machines.name.clone()).collect();
    let mut machines = Machine::list(&names, &NODES, &stage.file.tiers)?;
    if machines.is_empty() {
        machines = Machine::list(&[], &NODES, &stage.file.tiers)?;
        machines.retain(|machine| !machine.held_out);
    }
    machines.iter_mut().for_each(|machine| machine.held_out = false);
    Ok(machines)
}

/// The policy is the only tuner of the report, or the first.
impl Verdict for Report {
    /// The mean of regret with and without feedback, over all cells.
    fn score(&self) -> f64 {
        let overall = self.tuners.first().and_then(|tuner| tuner.overall.as_ref());
        overall.map_or(f64::INFINITY, |figures| (figures.regret + figures.regret_hold) / 2.0)
    }

    fn regret(&self) -> f64 {
        let overall = self.tuners.first().and_then(|tuner| tuner.overall.as_ref());
        overall.map_or(f64::INFINITY, |figures| figures.regret)
    }

    fn figures(&self) -> Figures {
        let of = |figure: fn(&evaluate::Figures) -> f64| by_tier(self, figure);
        Figures::from([
            (Knobs::WATCHED, of(|figures| figures.regret)),
            ("regret_hold", of(|figures| figures.regret_hold)),
            ("speedup", of(|figures| figures.speedup)),
            ("worst", of(|figures| figures.worst_cell)),
        ])
    }
}

/// One figure by tier and over all.
fn by_tier(report: &Report, figure: fn(&evaluate::Figures) -> f64) -> ByPlace {
    let Some(tuner) = report.tuners.first() else { return ByPlace::new() };
    let tiers = tuner.tiers.iter().map(|tier| (format!("tier{}", tier.tier), figure(&tier.figures)));
    tiers.chain(tuner.overall.iter().map(|figures| ("all".to_owned(), figure(figures)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged_on(curriculum: &str) -> Vec<Vec<(String, u32)>> {
        let name = |machine: Machine| (machine.cluster.name.clone(), machine.nodes);
        let names = |stage: &Arc<Stage>| {
            let mut names: Vec<_> = machines(stage).unwrap().into_iter().map(name).collect();
            names.sort();
            names
        };
        Curriculum::load(curriculum).unwrap().stages.iter().map(names).collect()
    }

    /// Each stage of `full` contains every machine of its tiers that is not held out.
    #[test]
    fn the_stages_of_full_are_judged_on_every_machine_of_their_tiers() {
        for (judged, most) in judged_on("full").iter().zip([1, 2, 4]) {
            let tiers: Vec<u8> = (1..=most).collect();
            let all = Machine::list(&[], &NODES, &tiers).unwrap();
            let all = all.into_iter().filter(|machine| !machine.held_out);
            let mut all: Vec<_> = all.map(|machine| (machine.cluster.name.clone(), machine.nodes)).collect();
            all.sort();
            assert_eq!(*judged, all, "tiers up to {most}");
        }
    }

    #[test]
    fn a_stage_of_two_machines_is_judged_on_these_alone() {
        let judged = judged_on("smoke").concat();
        assert!(
            judged.iter().all(|(name, _)| ["dgx_h100", "ib100g_1gpu"].contains(&name.as_str())),
            "{judged:?}"
        );
        assert_eq!(judged.len(), 4, "{judged:?}");
    }
}
