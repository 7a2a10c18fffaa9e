//! Which jobs a WAN agent is trained on, as a file: how large, how correlated, how dear a change.

use dynamiccl_spec::Collective;
use dynamiccl_spec::words::look_up;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Costs, Datacentre, Network, Schedule, Setting, WanError};
use crate::curriculum::{CurriculumError, Kind, Mix, read};
use crate::world::draw::{LogUniform, weighted};

/// The curricula that come with the program.
const BUILTIN: [(&str, &str); 1] = [("wan", include_str!("../../../curricula/wan.toml"))];
/// Version of the files' schema.
const SCHEMA: u32 = 1;
/// Most collectives of an episode.
const LONGEST: u32 = 1_000_000;

/// A distribution over jobs.
#[derive(Debug, Clone)]
pub struct WanCurriculum {
    /// Its name, or the file it came from.
    pub name: String,
    /// What the file states.
    pub file: WanFile,
    networks: Vec<(Network, f64)>,
}

/// A curriculum as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WanFile {
    /// Version of the schema.
    pub schema: u32,
    /// What it is about: `wan`.
    pub kind: Kind,
    /// One line for people.
    pub description: String,
    /// Collectives of an episode.
    pub collectives: u32,
    /// Networks.
    pub networks: Vec<Sizes>,
    /// Collectives that go round a ring.
    pub collective: Mix<Collective>,
    /// MB of a chunk, from and to.
    pub chunk_mb: [f64; 2],
    /// ms from one datacentre to another, from and to.
    pub delay_ms: [f64; 2],
    /// Correlations of the traffic.
    pub rho: Mix<f64>,
    /// ms of rebuilding, from and to.
    pub rebuild_ms: [f64; 2],
    /// ms of rerouting as a share of that, from and to.
    pub reroute_share: [f64; 2],
    /// Collectives after which links are seen.
    pub lag: Mix<u32>,
    /// What rewards are relative to.
    pub reference: Reference,
    /// Steps of a training.
    pub steps: u64,
    /// How an agent is trained on it, where that is not as usual; what it means is the agent's business.
    #[serde(default)]
    pub agent: toml::Table,
}

/// Datacentres of one network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// GPUs of each datacentre.
    pub gpus: Vec<usize>,
    /// Routers of each.
    pub routers: usize,
    /// How often it comes, relative to the others.
    pub weight: f64,
}

/// What rewards are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// What the same collective would have taken had nothing ever changed.
    Sample,
    /// The mean of that over many collectives: the sum of rewards is then the mean time, costs included.
    Mean,
    /// The same with a tenth of what rebuilding costs, and only what a collective takes longer than on the best ring and
    /// routes for its links counts. No move changes those, so whoever is better in one is in the other; but most of what
    /// traffic adds is gone, and jobs in which changes are dear do not drown the others.
    Excess,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// What stays the same.
    pub setting: Setting,
    /// What changes cost.
    pub costs: Costs,
    /// Correlation of the traffic.
    pub rho: f64,
    /// Collectives after which links are seen.
    pub lag: usize,
    /// Collectives of the episode.
    pub collectives: u32,
    /// What rewards are relative to.
    pub reference: Reference,
}

impl WanCurriculum {
    /// The names of the curricula that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTIN.into_iter().map(|(name, _)| name)
    }

    /// A curriculum by name, or from a file ending in `.toml`.
    pub fn load(name: &str) -> Result<Self, CurriculumError> {
        if let Some(text) = read(name)? {
            return Self::parse(name, &text);
        }
        let text = look_up("curriculum", name, &BUILTIN).map_err(CurriculumError::Name)?;
        Self::parse(name, text)
    }

    /// A curriculum from the text of a file.
    pub fn parse(name: &str, text: &str) -> Result<Self, CurriculumError> {
        let file: WanFile =
            toml::from_str(text).map_err(|error| CurriculumError::parse(name, text, &error))?;
        check(name, &file)?;
        let networks = file.networks.iter().map(|sizes| {
            let routers = sizes.routers;
            let datacentres: Vec<Datacentre> =
                sizes.gpus.iter().map(|&gpus| Datacentre { gpus, routers }).collect();
            let bad = |error: WanError| {
                CurriculumError::value(name, "networks", &format!("{:?}", sizes.gpus), &error.to_string())
            };
            Network::new(&datacentres).map(|network| (network, sizes.weight)).map_err(bad)
        });
        let networks = networks.collect::<Result<Vec<_>, _>>()?;
        Ok(WanCurriculum { name: name.to_owned(), file, networks })
    }

    /// Draws a job.
    pub fn draw(&self, rng: &mut ChaCha8Rng) -> Lesson {
        let (file, mut factor) = (&self.file, LogUniform::default());
        let network = &self.networks[weighted(rng, self.networks.iter().map(|(_, weight)| *weight))].0;
        let setting = Setting {
            chunk_mb: factor.draw(rng, file.chunk_mb),
            delay_ms: factor.draw(rng, file.delay_ms),
            ..Setting::new(network.clone()).expect("an allgather goes round every ring")
        };
        let collective = *file.collective.draw(rng);
        let setting = setting.with_collective(collective).expect("looked at when the file was read");
        let rebuild_ms = factor.draw(rng, file.rebuild_ms);
        let reroute_ms = rebuild_ms * factor.draw(rng, file.reroute_share);
        Lesson {
            setting,
            costs: Costs { rebuild_ms, reroute_ms },
            rho: *file.rho.draw(rng),
            lag: *file.lag.draw(rng) as usize,
            collectives: file.collectives,
            reference: file.reference,
        }
    }
}

fn check(name: &str, file: &WanFile) -> Result<(), CurriculumError> {
    let bad = |key: &str, value: String, remedy: &str| Err(CurriculumError::value(name, key, &value, remedy));
    if file.schema != SCHEMA {
        return bad("schema", file.schema.to_string(), "this build reads schema 1");
    }
    if file.kind != Kind::Wan {
        return bad("kind", file.kind.to_string(), "give \"wan\"");
    }
    if file.steps == 0 {
        return bad("steps", "0".to_owned(), "give at least 1");
    }
    if !(1..=LONGEST).contains(&file.collectives) {
        return bad("collectives", file.collectives.to_string(), "give 1 to 1000000");
    }
    if !file.networks.iter().any(|sizes| sizes.weight > 0.0) {
        return bad("networks", "[]".to_owned(), "give at least one with a weight above 0");
    }
    if let Some(sizes) = file.networks.iter().find(|sizes| !(sizes.weight >= 0.0 && sizes.weight.is_finite()))
    {
        return bad("networks", sizes.weight.to_string(), "a weight is a number from 0 up");
    }
    let ranges = [
        ("chunk_mb", file.chunk_mb),
        ("delay_ms", file.delay_ms),
        ("rebuild_ms", file.rebuild_ms),
        ("reroute_share", file.reroute_share),
    ];
    for (key, [low, high]) in ranges {
        if !(low > 0.0 && low <= high && high.is_finite()) {
            return bad(key, format!("[{low}, {high}]"), "give two numbers above 0, the smaller first");
        }
    }
    if let Some((rho, _)) = file.rho.iter().find(|(rho, _)| !(0.0..1.0).contains(rho)) {
        return bad("rho", rho.to_string(), "give correlations from 0 to below 1");
    }
    if let Some((lag, _)) = file.lag.iter().find(|(lag, _)| *lag > 64) {
        return bad("lag", lag.to_string(), "give at most 64 collectives");
    }
    if let Some((collective, _)) = file.collective.iter().find(|(c, _)| !Schedule::KNOWN.contains(c)) {
        let known = Schedule::KNOWN.map(Collective::name).join(", ");
        return bad("collective", collective.to_string(), &format!("give some of {known}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn jobs_are_as_the_file_says() {
        let curriculum = WanCurriculum::load("wan").unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..200 {
            let Lesson { setting, costs, rho, .. } = curriculum.draw(&mut rng);
            setting.check().unwrap();
            let [low, high] = curriculum.file.rebuild_ms;
            assert!((low..=high).contains(&costs.rebuild_ms) && costs.reroute_ms < costs.rebuild_ms);
            assert!((0.0..1.0).contains(&rho));
        }
    }

    #[test]
    fn a_bad_value_is_named_with_its_remedy() {
        let text = BUILTIN[0].1;
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            WanCurriculum::parse("x.toml", &text.replace(from, to)).unwrap_err().to_string()
        };
        let message = refused("schema = 1", "schema = 7");
        assert!(
            message.contains("x.toml") && message.contains("schema") && message.contains('7'),
            "{message}"
        );
        let message = refused("\"0.99\"", "\"1.5\"");
        assert!(message.contains("below 1"), "{message}");
        let message = refused("[4, 4]", "[4]");
        assert!(message.contains("2 to 16"), "{message}");
        let message = refused("allgather", "broadcast");
        assert!(message.contains("give some of allgather"), "{message}");
        assert!(refused("lag", "lagg").contains("lagg"));
    }
}
