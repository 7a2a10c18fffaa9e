//! A run for TensorBoard: scalars under the names that CleanRL gave them, histograms and decision maps.
//!
//! `docs/metrics.md` explains every tag. Files are written through tensorboard-rs's records and summaries;
//! its own writer panics where a disk is full, so the file is ours. Each start of a run has an event file of
//! its own; what earlier files say beyond the checkpoint is cut off, for it will be written again. A
//! TensorBoard that has read it already is told where the new file takes up the thread, and forgets it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use dynamiccl_env::reward;
use dynamiccl_spec::Head;
use dynamiccl_spec::gates::Gate;
use protobuf::Message;
use tensorboard_proto::event::{Event, SessionLog, SessionLog_SessionStatus};
use tensorboard_proto::summary::Summary;
use tensorboard_rs::record_writer::RecordWriter;
use tensorboard_rs::summary;

use super::error::RunError;
use crate::progress::Update;
use crate::subject::Figures;
use crate::subject::map::Image;

/// Bytes of a record beside its content: the length, and a checksum of either.
const FRAME: u64 = 8 + 4 + 4;
/// The form of event files that knows about restarts.
const FILE_VERSION: &str = "brain.Event:2";

/// What the name of an event file of ours begins with, and ends in.
const NAME: [&str; 2] = ["events.out.tfevents.", ".dynamiccl"];

/// An event file of a run: its name, and the bytes that count.
pub type EventFile = (String, u64);

/// An event file.
pub struct Board<W: Write = File> {
    writer: RecordWriter<W>,
    path: PathBuf,
    written: u64,
    /// The file, to be brought to the disk; none where events go elsewhere.
    file: Option<File>,
    /// The files before this one.
    before: Vec<EventFile>,
}

impl Board {
    /// A new event file in this folder for a run that goes on after `step`, when these were its files.
    pub fn create(folder: &Path, step: u64, before: Vec<EventFile>) -> Result<Self, RunError> {
        fs::create_dir_all(folder).map_err(RunError::write(folder))?;
        cut(folder, &before)?;
        // The files of a folder are read in the order of their names.
        let (seconds, count) = (now() as u64, before.len());
        let [begin, end] = NAME;
        let path = folder.join(format!("{begin}{seconds:010}.{count:04}{end}"));
        let made = File::create(&path).and_then(|file| Ok((file.try_clone()?, file)));
        let (writer, file) = made.map_err(RunError::write(&path))?;
        let board = Board::new(writer, &path, step)?;
        Ok(Board { before, file: Some(file), ..board })
    }
}

/// Leaves of our event files in a folder only what counts.
fn cut(folder: &Path, files: &[EventFile]) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).map_err(RunError::read(folder))? {
        let path = entry.map_err(RunError::read(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let cut = match files.iter().find(|(known, _)| *known == name) {
            Some((_, length)) => shorten(&path, *length),
            None if name.starts_with(NAME[0]) && name.ends_with(NAME[1]) => fs::remove_file(&path),
            None => Ok(()),
        };
        cut.map_err(RunError::write(&path))?;
    }
    Ok(())
}

/// Cuts a file off after so many bytes. One that is shorter stays so: zeros are no events.
fn shorten(path: &Path, length: u64) -> std::io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let length = length.min(file.metadata()?.len());
    file.set_len(length)
}

impl<W: Write> Board<W> {
    /// Events into this writer.
    pub fn new(writer: W, path: &Path, step: u64) -> Result<Self, RunError> {
        let (writer, path) = (RecordWriter::new(writer), path.to_owned());
        let mut board = Board { writer, path, written: 0, file: None, before: Vec::new() };
        let mut version = Event::new();
        version.set_file_version(FILE_VERSION.to_owned());
        board.add(version, 0)?;
        let mut log = SessionLog::new();
        log.set_status(SessionLog_SessionStatus::START);
        let mut start = Event::new();
        start.set_session_log(log);
        board.add(start, if step == 0 { 0 } else { step + 1 })?;
        Ok(board)
    }

    /// An update.
    pub fn update(&mut self, update: &Update, sps: f64) -> Result<(), RunError> {
        let step = update.step;
        let mut scalar = |tag: &str, value: f32| self.scalar(tag, value, step);
        if let Some(episodes) = update.episodes {
            scalar("charts/episodic_return", episodes.mean_return)?;
            scalar("charts/episodic_length", episodes.mean_length)?;
        }
        scalar("charts/learning_rate", update.rate)?;
        scalar("charts/SPS", sps as f32)?;
        scalar("charts/gain", update.gain)?;
        scalar("charts/decided", update.decided)?;
        scalar("charts/stage", update.stage as f32)?;
        scalar("charts/epochs", update.epochs as f32)?;
        let losses = &update.losses;
        scalar("losses/policy_loss", losses.policy)?;
        scalar("losses/value_loss", losses.value)?;
        scalar("losses/entropy", losses.entropy.iter().sum())?;
        scalar("losses/approx_kl", losses.divergence)?;
        scalar("losses/clipfrac", losses.clipped)?;
        scalar("losses/explained_variance", update.explained_variance)?;
        scalar("losses/hindsight", losses.hindsight)?;
        scalar("losses/resources", losses.resources)?;
        scalar("losses/estimate", losses.estimate)?;
        scalar("losses/gain", losses.gain)?;
        scalar("losses/lost", losses.lost)?;
        scalar("losses/gradient", update.gradient)?;
        for (head, entropy) in Head::ALL.iter().zip(losses.entropy) {
            scalar(&format!("entropy/{head}"), entropy)?;
        }
        for (term, value) in reward::NAMES.iter().zip(update.terms) {
            scalar(&format!("reward/{term}"), value)?;
        }
        for &gate in Gate::ALL {
            scalar(&format!("gates/{gate}"), update.gates.of(gate) as f32)?;
        }
        scalar("time/env", update.seconds.env as f32)?;
        scalar("time/act", update.seconds.act as f32)?;
        scalar("time/learn", update.seconds.learn as f32)?;
        for (head, counts) in Head::ALL.iter().zip(&update.choices) {
            self.histogram(&format!("actions/{head}"), counts, step)?;
        }
        Ok(())
    }

    /// A judgement of a policy.
    pub fn judged(&mut self, step: u64, figures: &Figures, seconds: f64) -> Result<(), RunError> {
        self.scalar("time/eval", seconds as f32, step)?;
        for (name, places) in figures {
            for (place, &value) in places {
                self.scalar(&format!("eval/{place}/{name}"), value as f32, step)?;
            }
        }
        Ok(())
    }

    /// A picture. Pictures are squares: tensorboard-rs takes height for width.
    pub fn image(&mut self, step: u64, image: &Image) -> Result<(), RunError> {
        let side = image.side;
        self.summary(summary::image(&image.tag, &image.rgb, &[3, side, side]), step)
    }

    fn scalar(&mut self, tag: &str, value: f32, step: u64) -> Result<(), RunError> {
        self.summary(summary::scalar(tag, value), step)
    }

    /// How often each value of a head was chosen: one bucket for each.
    fn histogram(&mut self, tag: &str, counts: &[u32], step: u64) -> Result<(), RunError> {
        let values = || counts.iter().enumerate().map(|(at, &count)| (at as f64, f64::from(count)));
        let taken = || values().filter(|(_, count)| *count > 0.0);
        let min = taken().map(|(at, _)| at).next().unwrap_or(0.0);
        let max = taken().map(|(at, _)| at).next_back().unwrap_or(0.0);
        let count: f64 = values().map(|(_, count)| count).sum();
        let sum = values().map(|(at, count)| at * count).sum();
        let squares = values().map(|(at, count)| at * at * count).sum();
        let limits: Vec<f64> = values().map(|(at, _)| at + 0.5).collect();
        let counts: Vec<f64> = values().map(|(_, count)| count).collect();
        self.summary(summary::histogram_raw(tag, min, max, count, sum, squares, &limits, &counts), step)
    }

    fn summary(&mut self, summary: Summary, step: u64) -> Result<(), RunError> {
        let mut event = Event::new();
        event.set_summary(summary);
        self.add(event, step)
    }

    fn add(&mut self, mut event: Event, step: u64) -> Result<(), RunError> {
        event.set_wall_time(now());
        event.set_step(step as i64);
        let mut record = Vec::new();
        event.write_to_vec(&mut record).expect("a message of plain fields");
        self.writer.write(&record).map_err(RunError::write(&self.path))?;
        self.written += record.len() as u64 + FRAME;
        Ok(())
    }

    /// Makes sure that all events are on the disk, and says in which files they are.
    pub fn sync(&self) -> Result<Vec<EventFile>, RunError> {
        self.file.as_ref().map_or(Ok(()), File::sync_data).map_err(RunError::write(&self.path))?;
        Ok(self.files())
    }

    /// The files of the run up to now.
    pub fn files(&self) -> Vec<EventFile> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.before.iter().cloned().chain([(name, self.written)]).collect()
    }
}

impl<W: Write> std::fmt::Debug for Board<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("path", &self.path).finish_non_exhaustive()
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
