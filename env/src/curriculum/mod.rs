//! Curricula: from cheap jobs on one node to full jobs across datacentres, as files.
//!
//! A stage is a distribution over jobs; a curriculum is a row of stages. Nothing here draws a job or
//! knows how a policy learns: the environment draws, the agent promotes.

mod check;
mod error;
mod kind;
mod mix;
mod stage;

use std::path::Path;
use std::sync::Arc;

use dynamiccl_spec::words::look_up;
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::text;
use crate::workload::ModelShape;
pub use error::CurriculumError;
pub use kind::Kind;
pub use mix::Mix;
pub use stage::{Dynamics, Hidden, Machines, Promotion, Regime, Replay, Stage, StageFile, Workloads};

/// The curricula that come with the program.
const BUILTIN: [(&str, &str); 7] = [
    ("smoke", include_str!("../../../curricula/smoke.toml")),
    ("paths", include_str!("../../../curricula/paths.toml")),
    ("stage1", include_str!("../../../curricula/stage1.toml")),
    ("stage2", include_str!("../../../curricula/stage2.toml")),
    ("stage3", include_str!("../../../curricula/stage3.toml")),
    ("full", include_str!("../../../curricula/full.toml")),
    ("short", include_str!("../../../curricula/short.toml")),
];
/// Version of the files' schema.
const SCHEMA: u32 = 1;

/// A row of stages.
#[derive(Debug, Clone)]
pub struct Curriculum {
    /// Its name, or the file it came from.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// The stages, in the order in which they are learned.
    pub stages: Vec<Arc<Stage>>,
}

/// A curriculum that only names its stages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowFile {
    schema: u32,
    description: String,
    stages: Vec<String>,
    /// How many times their own steps the stages have.
    #[serde(default = "all")]
    steps: f64,
}

fn all() -> f64 {
    1.0
}

/// Which of the two forms a file has.
#[derive(Debug, Deserialize)]
struct Form {
    stages: Option<toml::Value>,
}

impl Curriculum {
    /// The names of the curricula that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTIN.into_iter().map(|(name, _)| name)
    }

    /// A curriculum by name, or from a file ending in `.toml`.
    pub fn load(name: &str) -> Result<Curriculum, CurriculumError> {
        let text = text_of(name)?;
        let form: Form = parse(name, &text)?;
        if form.stages.is_none() {
            let stage = stage(name, &text, true)?;
            let description = stage.file.description.clone();
            return Ok(Curriculum { name: name.to_owned(), description, stages: vec![Arc::new(stage)] });
        }
        let row: RowFile = parse(name, &text)?;
        check::schema(name, row.schema)?;
        if row.stages.is_empty() {
            return Err(CurriculumError::value(name, "stages", "[]", "name at least one stage"));
        }
        check::times_steps(name, row.steps)?;
        let stages = row.stages.iter().map(|part| {
            let mut stage = load_stage(name, part, true)?;
            stage.file.promotion = stage.file.promotion.times(row.steps);
            Ok(Arc::new(stage))
        });
        let stages = stages.collect::<Result<_, CurriculumError>>()?;
        Ok(Curriculum { name: name.to_owned(), description: row.description, stages })
    }
}

/// A stage that another file names. Of a stage that is replayed, its own replays are left out.
fn load_stage(by: &str, name: &str, replays: bool) -> Result<Stage, CurriculumError> {
    let text = text_of(name)?;
    if parse::<Form>(name, &text)?.stages.is_some() {
        return Err(CurriculumError::value(by, "stages", name, "name a stage, not a row of stages"));
    }
    stage(name, &text, replays)
}

fn stage(name: &str, text: &str, replays: bool) -> Result<Stage, CurriculumError> {
    let file: StageFile = parse(name, text)?;
    check::stage(name, &file)?;
    let clusters = file.clusters.iter().map(|machines| {
        check::place(name, machines)?;
        let cluster = Cluster::load_at(&machines.name, machines.at_tier)
            .map_err(|error| CurriculumError::Cluster { file: name.to_owned(), error: Box::new(error) })?;
        check::nodes(name, machines, &cluster)?;
        Ok(Arc::new(cluster))
    });
    let clusters = clusters.collect::<Result<Vec<_>, CurriculumError>>()?;
    let models = file.workload.models.iter().map(|(model, _)| {
        let bad = |error| CurriculumError::Model { file: name.to_owned(), error };
        ModelShape::preset(model).map(Arc::new).map_err(bad)
    });
    let models = models.collect::<Result<Vec<_>, _>>()?;
    let earlier = file.replay.stages.iter().filter(|_| replays);
    let replay = earlier.map(|earlier| load_stage(name, earlier, false).map(Arc::new));
    let replay = replay.collect::<Result<Vec<_>, _>>()?;
    check::machines(name, &file, &clusters)?;
    Ok(Stage { name: name.to_owned(), clusters, models, replay, file })
}

fn text_of(name: &str) -> Result<String, CurriculumError> {
    if let Some(text) = read(name)? {
        return Ok(text);
    }
    look_up("curriculum", name, &BUILTIN).map(str::to_owned).map_err(CurriculumError::Name)
}

/// The text of a file ending in `.toml`; none where that is not what is named.
pub(crate) fn read(name: &str) -> Result<Option<String>, CurriculumError> {
    if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let unreadable = |error| CurriculumError::Read { file: name.to_owned(), error };
    text::read(name).map(Some).map_err(unreadable)
}

fn parse<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, CurriculumError> {
    toml::from_str(text).map_err(|error| CurriculumError::parse(name, text, &error))
}
