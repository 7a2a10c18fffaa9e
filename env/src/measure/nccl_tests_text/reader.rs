//! Line by line: what belongs to the table, what describes the run, and what neither.

use std::path::Path;

use dynamiccl_spec::Collective;

use super::layout::Layout;
use super::noise::split_noise;
use super::section::{Device, Section};
use super::version_of;
use crate::measure::Log;
use crate::measure::collective::{Named, named, named_by_command};
use crate::measure::error::{Fault, MeasureError};
use crate::measure::forced::Forced;

/// Rows that one log may hold.
const MAX_ROWS: usize = 1 << 20;

/// How the warning about a failed run starts.
pub(super) const FAILED: &str = "the run failed: ";

/// A row whose tokens are still being collected.
struct Pending {
    line: u64,
    layout: Layout,
    tokens: Vec<String>,
}

/// What was read so far.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Path,
    pub(super) told: Option<Collective>,
    pub(super) log: Log,
    pub(super) forced: Forced,
    pub(super) by_command: Named,
    pub(super) layout: Option<Layout>,
    pub(super) section: Section,
    pending: Option<Pending>,
    /// Numbers where a row should start, too few to be one: the file's last words if it was cut.
    pub(super) stray: Option<(u64, String)>,
    pub(super) last_line: u64,
    pub(super) foreign: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a Path, told: Option<Collective>) -> Self {
        Reader {
            file,
            told,
            log: Log::default(),
            forced: Forced::default(),
            by_command: Named::Nothing,
            layout: None,
            section: Section::default(),
            pending: None,
            stray: None,
            last_line: 0,
            foreign: 0,
        }
    }

    pub(super) fn line(&mut self, number: u64, line: &str) -> Result<(), MeasureError> {
        self.last_line = number;
        let (own, nccl) = split_noise(line);
        if let Some(message) = nccl {
            self.nccl_message(message);
        }
        match own.trim_start() {
            "" => Ok(()),
            own if own.starts_with('#') => self.comment(number, own),
            own => self.text(number, own),
        }
    }

    /// A message of NCCL itself: of interest for its version and for what the user pinned.
    fn nccl_message(&mut self, message: &str) {
        self.forced.note_line(message);
        if let Some((_, version)) = message.split_once("NCCL version ") {
            let version = version.split(['+', ' ']).next().unwrap_or(version);
            self.log.nccl_version.get_or_insert(version.to_owned());
        }
    }

    /// A line that starts with `#`.
    fn comment(&mut self, number: u64, line: &str) -> Result<(), MeasureError> {
        self.settle_half_row()?;
        if let Some(device) = Device::parse(line) {
            self.section.add_device(number, device);
        } else if let Some(layout) = Layout::from_header(line) {
            self.refuse_cpu_time(number, line, &layout)?;
            self.layout = Some(layout);
        } else if let Some((_, program)) = line.split_once("Collective test starting:") {
            self.end_section()?;
            self.section.named = Some(named(program.trim()));
        } else if line.contains("nThread ") && line.contains("nGpus ") {
            if self.section.threads_seen {
                self.end_section()?;
            }
            self.section.threads_seen = true;
        } else if line.contains("Avg bus bandwidth") || line.contains("Collective test concluded") {
            self.section.trailer = true;
        } else if let Some((_, code)) = line.split_once("nccl-library=") {
            let version = code.split_whitespace().next().and_then(|c| version_of(c.parse().ok()?));
            self.log.nccl_version = version.or(self.log.nccl_version.take());
        }
        Ok(())
    }

    fn refuse_cpu_time(&self, number: u64, line: &str, layout: &Layout) -> Result<(), MeasureError> {
        if !layout.cpu_time {
            return Ok(());
        }
        let remedy = "it times the launching thread, not the collective: measure again without -C 1";
        Err(self.bad("column", number, line, remedy))
    }

    /// A line of the table, or something that no part of nccl-tests printed.
    fn text(&mut self, number: u64, line: &str) -> Result<(), MeasureError> {
        let tokens: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let known = self.layout.as_ref().map(|layout| layout.of_row(&tokens));
        if let Some(layout) = known.unwrap_or_else(|| Layout::from_row(&tokens)) {
            self.settle_half_row()?;
            self.refuse_unfinished()?;
            self.layout.get_or_insert_with(|| layout.clone());
            self.pending = Some(Pending { line: number, layout, tokens });
        } else if let Some(pending) = self.pending.as_mut().filter(|_| tokens.iter().all(|t| is_result(t))) {
            pending.tokens.extend(tokens);
        } else if tokens.iter().all(|t| is_result(t)) {
            self.stray = Some((number, line.to_owned()));
        } else {
            self.foreign_text(line);
        }
        self.take_whole_row()
    }

    /// Text of the shell, the launcher, or a dying test.
    fn foreign_text(&mut self, line: &str) {
        self.nccl_message(line);
        if self.by_command == Named::Nothing {
            self.by_command = named_by_command(line);
        }
        if line.contains("Test NCCL failure")
            || line.contains("Test CUDA failure")
            || line.contains("Test timeout")
        {
            self.warn(format!("{FAILED}{}", Fault::new(self.file, 0, line, "").value));
        }
    }

    /// Moves the pending row into the section once all its tokens are there.
    fn take_whole_row(&mut self) -> Result<(), MeasureError> {
        let whole = |p: &mut Pending| p.tokens.len() >= p.layout.width();
        let Some(Pending { line, layout, tokens }) = self.pending.take_if(whole) else {
            return Ok(());
        };
        if tokens.len() > layout.width() {
            let remedy =
                format!("the header announces {} columns: remove what does not belong", layout.width());
            return Err(self.bad("row", line, &tokens.join(" "), &remedy));
        }
        self.stray = None;
        let halves = layout.halves(&tokens).map_err(|(column, token)| {
            self.bad(&column, line, &token, "a number is expected here: measure again or delete the row")
        })?;
        self.section.add_row(line, &layout, &tokens, &halves);
        if self.log.rows.len() + self.section.cells.len() > MAX_ROWS {
            let value = format!("more than {MAX_ROWS} rows");
            return Err(MeasureError::TooLarge(Fault::new(self.file, line, value, "split the file")));
        }
        Ok(())
    }

    /// Takes a row that has only its first half although another line of the table follows: some
    /// forks skip the in-place run. At the end of the file the same row is a cut one.
    fn settle_half_row(&mut self) -> Result<(), MeasureError> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        match pending.layout.out_of_place_only() {
            Some(layout) if layout.width() == pending.tokens.len() => pending.layout = layout,
            _ => return Ok(()),
        }
        self.warn("rows without their in-place half taken as out-of-place".to_owned());
        self.take_whole_row()
    }

    pub(super) fn refuse_unfinished(&mut self) -> Result<(), MeasureError> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        Err(self.cut_off(pending.line, &pending.tokens.join(" ")))
    }

    pub(super) fn cut_off(&self, line: u64, value: &str) -> MeasureError {
        let remedy = "the row lacks columns: delete it or measure again (NCCL_DEBUG=WARN keeps rows whole)";
        MeasureError::Truncated(Fault::new(self.file, line, value, remedy))
    }

    fn bad(&self, what: &str, line: u64, value: &str, remedy: &str) -> MeasureError {
        MeasureError::Bad { what: what.to_owned(), at: Fault::new(self.file, line, value, remedy) }
    }

    pub(super) fn warn(&mut self, warning: String) {
        // A log of a thousand failing runs says nothing more than one of ten.
        if self.log.warnings.len() < 64 && !self.log.warnings.contains(&warning) {
            self.log.warnings.push(warning);
        }
    }
}

/// Whether a token can stand among the results of a row.
fn is_result(token: &str) -> bool {
    token == "N/A" || token.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.')
}
