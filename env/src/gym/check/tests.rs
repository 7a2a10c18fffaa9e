//! Every rule against an environment that breaks it and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::gym::{Action, EnvError, Observation, Spaces, Tiny, TinyInfo, Transition};

/// What is wrong with an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    Nothing,
    NameTwice,
    LabelTwice,
    WiderThanStated,
    ResetFailsMidEpisode,
    ResetFailsForASeed,
    LeavesANumber,
    LeavesTheMaskOnReset,
    StepsAfterTheEnd,
    WrongErrorAfterTheEnd,
    RewardOfTheProcess,
    KeepsStateOverReset,
    UnseededIsRandom,
    InfoOfTheProcess,
    SeedIgnored,
    NextSeedNext,
    SameEpisodeAgain,
    SharedState,
    OutOfRange,
    NotANumber,
    NothingLegal,
    NoSuchLabel,
    UnusedHeadIsOpen,
    DecidesNothing,
    ChoiceWithoutDeciding,
    LegalRefused,
    IllegalAccepted,
    IllegalHarms,
    IllegalIsAnotherError,
    InfiniteReward,
    EndUnsaid,
    NoEnd,
}

const FLAWS: [(Flaw, Rule); 31] = [
    (Flaw::NameTwice, Rule::Spaces),
    (Flaw::LabelTwice, Rule::Spaces),
    (Flaw::WiderThanStated, Rule::Spaces),
    (Flaw::ResetFailsMidEpisode, Rule::Reset),
    (Flaw::ResetFailsForASeed, Rule::Reset),
    (Flaw::LeavesANumber, Rule::Written),
    (Flaw::LeavesTheMaskOnReset, Rule::Written),
    (Flaw::StepsAfterTheEnd, Rule::Order),
    (Flaw::WrongErrorAfterTheEnd, Rule::Order),
    (Flaw::RewardOfTheProcess, Rule::Repeat),
    (Flaw::KeepsStateOverReset, Rule::Repeat),
    (Flaw::UnseededIsRandom, Rule::Stream),
    (Flaw::InfoOfTheProcess, Rule::Infos),
    (Flaw::SeedIgnored, Rule::Seeds),
    (Flaw::NextSeedNext, Rule::Seeds),
    (Flaw::SameEpisodeAgain, Rule::Seeds),
    (Flaw::SharedState, Rule::Isolation),
    (Flaw::OutOfRange, Rule::Range),
    (Flaw::NotANumber, Rule::Range),
    (Flaw::NothingLegal, Rule::Masks),
    (Flaw::NoSuchLabel, Rule::Masks),
    (Flaw::UnusedHeadIsOpen, Rule::Masks),
    (Flaw::DecidesNothing, Rule::Idle),
    (Flaw::ChoiceWithoutDeciding, Rule::Idle),
    (Flaw::LegalRefused, Rule::Accept),
    (Flaw::IllegalAccepted, Rule::Refuse),
    (Flaw::IllegalHarms, Rule::Refuse),
    (Flaw::IllegalIsAnotherError, Rule::Refuse),
    (Flaw::InfiniteReward, Rule::Reward),
    (Flaw::EndUnsaid, Rule::End),
    (Flaw::NoEnd, Rule::End),
];

/// The tiny environment with a flaw.
struct Flawed {
    inner: Tiny,
    spaces: Spaces,
    flaw: Flaw,
    /// What all environments of a check share.
    process: Arc<AtomicU64>,
    id: u64,
    seed: u64,
    running: bool,
    harmed: bool,
    steps: u64,
    all_steps: u64,
    shown: Observation,
}

impl Flawed {
    fn new(flaw: Flaw, process: &Arc<AtomicU64>, made: &AtomicU64) -> Self {
        let inner = Tiny::default();
        let mut spaces = inner.spaces().clone();
        match flaw {
            Flaw::NameTwice => spaces.history[0].name = spaces.context[0].name.clone(),
            Flaw::LabelTwice => spaces.heads[0].labels[1] = spaces.heads[0].labels[0].clone(),
            _ => {}
        }
        let shown = Observation::new(inner.spaces());
        Flawed {
            inner,
            spaces,
            flaw,
            process: process.clone(),
            id: 1 + made.fetch_add(1, Ordering::Relaxed),
            seed: 0,
            running: false,
            harmed: false,
            steps: 0,
            all_steps: 0,
            shown,
        }
    }

    /// Spoils an observation.
    fn show(&mut self, into: &mut Observation) {
        match self.flaw {
            Flaw::WiderThanStated => into.context = vec![0.5; into.context.len() + 1].into(),
            Flaw::OutOfRange if self.steps == 5 => into.context[0] = 1.5,
            Flaw::NotANumber if self.steps == 5 => into.history[1] = f32::NAN,
            Flaw::NothingLegal if self.steps == 5 => into.mask[1] = 0,
            Flaw::NoSuchLabel => into.mask[0] |= 1 << 20,
            Flaw::UnusedHeadIsOpen => into.mask[4] |= 2,
            Flaw::DecidesNothing => into.decides = true,
            Flaw::ChoiceWithoutDeciding => into.decides = false,
            _ => {}
        }
        if matches!(self.flaw, Flaw::NoSuchLabel | Flaw::UnusedHeadIsOpen) {
            into.decides = true;
        }
        self.shown.clone_from(into);
    }

    fn info(&self, info: TinyInfo) -> TinyInfo {
        if self.flaw == Flaw::InfoOfTheProcess { TinyInfo { best: self.id as u8 } } else { info }
    }

    /// An action that the environment below takes: choices that only the flaw allows become legal ones.
    fn tamed(&self, action: &Action, mask: &Observation) -> Action {
        let mut action = *action;
        if self.flaw == Flaw::IllegalAccepted {
            for (choice, mask) in action.choice.iter_mut().zip(mask.mask) {
                if *choice >= 32 || mask >> *choice & 1 == 0 {
                    *choice = mask.trailing_zeros() as u8;
                }
            }
        }
        if self.flaw == Flaw::NoSuchLabel && action.choice[0] == 20 {
            action.choice[0] = (mask.mask[0] & 7).trailing_zeros() as u8;
        }
        if self.flaw == Flaw::UnusedHeadIsOpen && action.choice[4] == 1 {
            action.choice[4] = 0;
        }
        action
    }
}

impl Env for Flawed {
    type Info = TinyInfo;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<TinyInfo, EnvError> {
        let running = std::mem::replace(&mut self.running, true);
        match self.flaw {
            Flaw::ResetFailsMidEpisode if running && seed.is_none() => {
                return Err(EnvError::Backend("busy".to_owned()));
            }
            Flaw::ResetFailsForASeed if seed == Some(3) => {
                self.running = false;
                return Err(EnvError::Backend("no such job".to_owned()));
            }
            _ => {}
        }
        self.seed = seed.unwrap_or(self.seed.wrapping_add(u64::from(self.flaw == Flaw::NextSeedNext)));
        (self.steps, self.harmed) = (0, false);
        self.process.store(self.id << 32, Ordering::Relaxed);
        let seed = match self.flaw {
            Flaw::SeedIgnored => seed.map(|_| 7),
            Flaw::NextSeedNext | Flaw::SameEpisodeAgain => Some(self.seed),
            Flaw::UnseededIsRandom if seed.is_none() => Some(0x9e37 * self.id),
            _ => seed,
        };
        let before = into.mask;
        let mut clean = Observation::new(self.inner.spaces());
        let info = self.inner.reset(seed, &mut clean)?;
        into.clone_from(&clean);
        if self.flaw == Flaw::LeavesTheMaskOnReset {
            into.mask[4] |= before[4] & 1 << 23;
        }
        self.show(into);
        Ok(self.info(info))
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<TinyInfo>, EnvError> {
        let kept = into.history.last().copied();
        let others = self.process.swap(self.id << 32, Ordering::Relaxed) >> 32 != self.id;
        if self.flaw == Flaw::LegalRefused && self.running && action.choice[1] == 2 {
            self.inner.spaces().check(&self.shown.mask, &action.choice)?;
            return Err(EnvError::Illegal { head: "second".into(), choice: "2".into(), legal: "?".into() });
        }
        let action = self.tamed(action, &self.shown);
        let mut clean = Observation::new(self.inner.spaces());
        let mut transition = match (self.inner.step(&action, &mut clean), self.flaw) {
            (Ok(transition), _) => transition,
            (Err(EnvError::NoEpisode(_)), Flaw::StepsAfterTheEnd) => {
                let info = TinyInfo { best: 0 };
                return Ok(Transition { reward: 0.0, terminated: true, truncated: false, info });
            }
            (Err(EnvError::NoEpisode(_)), Flaw::WrongErrorAfterTheEnd)
            | (Err(EnvError::Illegal { .. }), Flaw::IllegalIsAnotherError) => {
                return Err(EnvError::Backend("no".to_owned()));
            }
            (Err(error), flaw) => {
                self.harmed |= flaw == Flaw::IllegalHarms;
                return Err(error);
            }
        };
        into.clone_from(&clean);
        (self.steps, self.all_steps) = (self.steps + 1, self.all_steps + 1);
        match self.flaw {
            Flaw::LeavesANumber => into.history.iter_mut().last().zip(kept).map_or((), |(x, kept)| *x = kept),
            Flaw::RewardOfTheProcess => transition.reward -= self.id as f64,
            Flaw::KeepsStateOverReset => transition.reward -= self.all_steps as f64,
            Flaw::SharedState if others => transition.reward -= 1.0,
            Flaw::IllegalHarms if self.harmed => transition.reward -= 1.0,
            Flaw::InfiniteReward if self.steps == 6 => transition.reward = f64::NEG_INFINITY,
            _ => {}
        }
        let over = transition.terminated || transition.truncated;
        if over && matches!(self.flaw, Flaw::EndUnsaid | Flaw::NoEnd) {
            (transition.terminated, transition.truncated) = (false, false);
        }
        if over && self.flaw == Flaw::NoEnd {
            self.inner.reset(None, into)?;
        } else {
            self.running = !over;
        }
        self.show(into);
        transition.info = self.info(transition.info);
        Ok(transition)
    }
}

fn report(flaw: Flaw) -> Report {
    let (process, made) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    let options = CheckOptions { steps: 3_000, longest_episode: 200, ..CheckOptions::default() };
    let make = || Ok::<_, EnvError>(Flawed::new(flaw, &process, &made));
    check(make, &options, |_| Ok(())).unwrap()
}

#[test]
fn an_environment_without_a_flaw_keeps_every_rule() {
    let report = report(Flaw::Nothing);
    assert!(report.rules.iter().all(|rule| rule.verdict == Verdict::Kept), "{report:#?}");
    assert_eq!(report.rules.len(), Rule::ALL.len());
    assert!(report.steps > 3_000 && report.id == "tiny-v1");
}

#[test]
fn every_flaw_breaks_its_rule_and_no_other() {
    let mut wrong = Vec::new();
    for (flaw, rule) in FLAWS {
        let report = report(flaw);
        let broken: Vec<_> = report.broken().map(|result| (result.rule, result.detail.clone())).collect();
        let mut open = report.rules.iter().filter(|result| result.verdict == Verdict::Open);
        let only = broken.len() == 1 && broken[0].0 == rule && !broken[0].1.is_empty() && !report.ok();
        if !only || !open.all(|result| result.rule.needs() == Some(rule)) {
            wrong.push((flaw, rule, broken));
        }
    }
    assert!(wrong.is_empty(), "flaw, its rule, what broke: {wrong:#?}");
}

#[test]
fn every_rule_has_a_flaw_that_breaks_it() {
    let broken: BTreeSet<Rule> = FLAWS.iter().map(|(_, rule)| *rule).collect();
    assert_eq!(broken.into_iter().collect::<Vec<_>>(), Rule::ALL);
}

#[test]
fn rules_have_names_of_their_own() {
    let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for rule in Rule::ALL {
        assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        assert!(!rule.meaning().is_empty() && !rule.remedy().is_empty());
    }
}

#[test]
fn a_recording_is_not_asked_for_different_seeds() {
    let make = || Ok::<_, EnvError>(Tiny::default());
    let options = CheckOptions { steps: 100, seeds_matter: false, ..CheckOptions::default() };
    let report = check(make, &options, |_| Ok(())).unwrap();
    let open: Vec<_> = report.rules.iter().filter(|rule| rule.verdict == Verdict::Open).collect();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].rule, Rule::Seeds);
}

#[test]
fn progress_adds_up_to_the_steps_and_can_stop_the_check() {
    let make = || Ok::<_, &str>(Tiny::default());
    let options = CheckOptions { steps: 5_000, ..CheckOptions::default() };
    let mut told = 0;
    check(make, &options, |steps| {
        told += steps;
        Ok(())
    })
    .unwrap();
    assert_eq!(told, 5_000);
    assert_eq!(check(make, &options, |_| Err("stop")), Err("stop"));
}
