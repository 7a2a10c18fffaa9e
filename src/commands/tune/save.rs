//! The files of `tune`: NVIDIA's table, the lookup file, and the surface of one call.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::nccl_csv::{Channels, Line, Rule, Table};
use dynamiccl_spec::Collective;
use dynamiccl_spec::fnv::Fnv;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::report::{About, Tuned};
use super::task::Task;
use crate::args::SpaceKind;
use crate::atomic::OutFile;
use crate::commands::machine::name;
use crate::session::Session;

/// Number of the lookup file's form.
const SCHEMA: u32 = 1;

/// Where what was found goes.
pub struct Saved {
    path: PathBuf,
    form: Form,
    contents: Contents,
}

/// What the names of files do not say: what was in them. Lookup files of earlier releases say nothing of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Contents {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constants_hash: Option<String>,
}

impl Contents {
    /// The fingerprints of a machine and of the model's constants.
    pub fn of(cluster: &Cluster, constants: &ConstantsFile) -> Result<Self> {
        let hash = |text: String| {
            let mut hash = Fnv::new();
            hash.text(&text);
            Some(format!("{:016x}", hash.value()))
        };
        Ok(Contents {
            cluster_hash: hash(cluster.to_toml()?),
            constants_hash: hash(serde_json::to_string(constants)?),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Table,
    Lookup,
}

/// The lookup file.
#[derive(Serialize, Deserialize)]
struct Lookup {
    schema: u32,
    seed: u64,
    #[serde(flatten)]
    about: About,
    #[serde(flatten)]
    contents: Contents,
    calls: Vec<Tuned>,
}

impl Lookup {
    /// The first field in which an earlier file differs, of those that it has.
    fn other_than(&self, earlier: &Lookup) -> Result<Option<String>> {
        let fields = |lookup: &Lookup| {
            let mut document = serde_json::to_value(lookup)?;
            document["calls"] = Value::Null;
            anyhow::Ok(document)
        };
        let (ours, theirs) = (fields(self)?, fields(earlier)?);
        let mut both = ours.as_object().into_iter().flatten().filter_map(|(field, ours)| {
            theirs.get(field).filter(|theirs| *theirs != ours).map(|theirs| (field, theirs, ours))
        });
        Ok(both.next().map(|(field, theirs, ours)| format!("{field} is {theirs} there and {ours} here")))
    }
}

impl Saved {
    /// The form that the name asks for.
    pub fn new(path: &Path, space: SpaceKind, contents: Contents) -> Result<Self> {
        let form = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Form::Table,
            Some("json") => Form::Lookup,
            _ => bail!("--out {}: end it in .csv (NVIDIA's table) or .json (lookup file)", name(path)),
        };
        ensure!(
            form == Form::Lookup || space == SpaceKind::Own,
            "--out {}: NVIDIA's table has no threads and buffers, which --space tuccl searches; end it in .json, or give --space own",
            name(path)
        );
        OutFile::probe(path)?;
        Ok(Saved { path: path.to_owned(), form, contents })
    }

    /// Whether it is NVIDIA's table.
    pub fn is_table(&self) -> bool {
        self.form == Form::Table
    }

    /// What an earlier run has found of the same search; nothing where there is no file.
    pub fn earlier(&self, about: &About, seed: u64) -> Result<Vec<Tuned>> {
        let path = name(&self.path);
        ensure!(self.form == Form::Lookup, "--resume: {path} cannot be read back; end --out in .json");
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&self.path).with_context(|| format!("cannot read {path}"))?;
        let lookup: Lookup = serde_json::from_str(&text)
            .with_context(|| format!("{path} is no lookup file; remove it or leave --resume out"))?;
        if let Some(other) = self.lookup(about, seed, &[]).other_than(&lookup)? {
            bail!(
                "{path} is of another search: {other}; give the words and files that it was made with, or leave \
                 --resume out"
            );
        }
        Ok(lookup.calls.into_iter().filter(|call| call.complete).collect())
    }

    /// Writes what was found before Ctrl-C, where it can be gone on with; a table is whole or as it was.
    pub fn write_part(&self, about: &About, session: &Session, calls: &[Tuned], left: usize) -> Result<()> {
        if self.is_table() {
            let path = name(&self.path);
            session
                .output
                .note(format_args!("{path} is as it was; an --out that ends in .json keeps a part"));
            return Ok(());
        }
        session.output.note(format_args!("{left} calls are left; --resume goes on with them"));
        self.write(about, session.seed, calls)
    }

    /// Writes what was found.
    pub fn write(&self, about: &About, seed: u64, calls: &[Tuned]) -> Result<()> {
        let text = match self.form {
            Form::Table => table(about, seed, calls)?.to_string(),
            Form::Lookup => serde_json::to_string_pretty(&self.lookup(about, seed, calls))? + "\n",
        };
        OutFile::create(&self.path)?.finish(text.as_bytes())
    }

    fn lookup(&self, about: &About, seed: u64, calls: &[Tuned]) -> Lookup {
        let (about, contents) = (about.clone(), self.contents.clone());
        Lookup { schema: SCHEMA, seed, about, contents, calls: calls.to_vec() }
    }
}

/// The rules for NVIDIA's example tuner, with explicit channels.
fn table(about: &About, seed: u64, calls: &[Tuned]) -> Result<Table> {
    let About { cluster, nodes, ranks, .. } = about;
    let remark = format!("# simulated: {cluster}, {nodes} nodes, seed {seed}");
    let mut lines = vec![Line::Remark(remark)];
    for collective in Collective::TUNED {
        let mut of_kind: Vec<&Tuned> = calls.iter().filter(|call| call.collective == collective).collect();
        of_kind.sort_by_key(|call| call.bytes);
        for (at, call) in of_kind.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| of_kind[at].bytes);
            let after = of_kind.get(at + 1).map(|next| next.bytes);
            let bytes = range(before, call.bytes, after);
            let channels = u8::try_from(call.best.nchannels).context("more channels than NCCL has")?;
            let rule = Rule::new(collective, bytes, call.best.pair, Channels::Exactly(channels));
            lines.push(Line::Rule(rule.on(*nodes, *ranks)));
        }
    }
    Ok(Table { lines })
}

/// The sizes that one tuned size stands for: up to halfway to its neighbours in powers of two, and
/// without an end beyond the outermost. The only size of a collective stands for itself.
fn range(before: Option<u64>, bytes: u64, after: Option<u64>) -> [u64; 2] {
    let halfway = |a: u64, b: u64| (a as f64 * b as f64).sqrt() as u64;
    if before.is_none() && after.is_none() {
        return [bytes, bytes];
    }
    let from = before.map_or(0, |before| halfway(before, bytes) + 1);
    [from, after.map_or(Rule::OPEN, |after| halfway(bytes, after))]
}

/// The true time of every setting of one call.
#[derive(Serialize)]
struct Surface<'a> {
    schema: u32,
    simulated: bool,
    cluster: &'a str,
    nodes: u32,
    collective: Collective,
    bytes: u64,
    /// Values of each dimension, and whether they are in order; the last one runs fastest.
    dimensions: Vec<Values>,
    /// Values of the setting that a search begins with.
    start: Vec<usize>,
    /// µs by position.
    time_us: &'a [f64],
}

#[derive(Serialize)]
struct Values {
    values: usize,
    ordered: bool,
}

/// Writes the surface of a call.
pub fn surface(path: &Path, about: &About, task: &Task) -> Result<()> {
    let dimensions = task.space.dimensions();
    let document = Surface {
        schema: SCHEMA,
        simulated: true,
        cluster: &about.cluster,
        nodes: about.nodes,
        collective: task.collective,
        bytes: task.bytes,
        dimensions: dimensions.iter().map(|d| Values { values: d.values, ordered: d.ordered }).collect(),
        start: (0..dimensions.len()).map(|d| task.start.value(d)).collect(),
        time_us: &task.surface,
    };
    let text = serde_json::to_string(&document)? + "\n";
    OutFile::create(path)?.finish(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_share_the_line_without_gaps() {
        let sizes = [1 << 10, 1 << 12, 1 << 14];
        let of =
            |at: usize| range(at.checked_sub(1).map(|i| sizes[i]), sizes[at], sizes.get(at + 1).copied());
        assert_eq!([of(0), of(1), of(2)], [[0, 2048], [2049, 8192], [8193, Rule::OPEN]]);
        assert_eq!(range(None, 512, None), [512, 512]);
    }
}
