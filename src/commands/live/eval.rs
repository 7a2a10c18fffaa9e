//! `live eval`: a policy against NCCL's own choice, call by call in turn.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use dynamiccl_live::cell::{Cell, Tries};
use dynamiccl_live::compare::{Contest, Oracle, RIVALS, Side, compare, contests, overall};
use dynamiccl_live::crew::LiveError;
use dynamiccl_live::measure::{Effort, SURE};
use dynamiccl_live::sheet::Conditions;
use dynamiccl_live::spread::Ratio;
use dynamiccl_policies::frozen::SHIPPED;
use dynamiccl_spec::{Bytes, ChannelChoice, ChunkChoice};
use serde::Serialize;

use super::job::{Job, Wish, told};
use super::known::{How, Known, link};
use crate::args::{LiveEvalArgs, LiveRival};
use crate::commands::machine::name;
use crate::exit::Ending;
use crate::progress::Progress;
use crate::session::Session;
use crate::table::{Column, Table};
use crate::words::counted;

/// No cell may be significantly below this.
const FLOOR: f64 = 0.95;
/// Channels that the search for the best tries.
const CHANNELS: [u8; 5] = [1, 2, 4, 8, 16];
/// How it tries them: with as many rounds as an interval needs, and no more.
const SEARCH: Effort = Effort { least: SURE, most: SURE, bound: 0.0 };
/// Starts of either side, where NCCL's own ranks and the policy's are not the same: some settings take another time with
/// every start.
const TURNS: u32 = 3;

/// Compares.
pub fn run(args: &LiveEvalArgs, session: &Session) -> Result<Ending> {
    let wish = wish(args)?;
    let begun = Instant::now();
    let compared = match args.launch_threads {
        Some(threads) => by_turns(args, &wish, threads, session)?,
        None => together(args, &wish, session)?,
    };
    let Some(Compared { conditions, contests, ended }) = compared else { return Ok(Ending::Done) };
    let report = Report::new(args, conditions, &contests, begun.elapsed().as_secs_f64());
    session.report("live eval", &report)?;
    ended?;
    Ok(if report.ok { Ending::Done } else { Ending::No })
}

fn wish(args: &LiveEvalArgs) -> Result<Wish> {
    let counts = args.of_kernels.threads.clone();
    ensure!(counts.len() <= 1, "--threads: only a sweep tries several; give one");
    ensure!(
        args.sweep.is_none() || args.against.contains(&LiveRival::Oracle),
        "--sweep: only oracle is looked up there; give --against nccl,oracle, or leave it out"
    );
    let variables = variables(args)?;
    Ok(Wish {
        variables,
        threads: counts.first().copied(),
        counts,
        ..Wish::of(args.clock.into(), &args.calls)
    })
}

/// What was compared.
struct Compared {
    conditions: Conditions,
    contests: Vec<Contest>,
    /// Whether the ranks have ended as they should. Where not, what was measured before is no worse.
    ended: Result<()>,
}

/// On the same ranks, round after round; none where this was a rank of somebody else's comparison.
fn together(args: &LiveEvalArgs, wish: &Wish, session: &Session) -> Result<Option<Compared>> {
    if Job::attend(&args.job, std::slice::from_ref(wish), session)?.is_some() {
        return Ok(None);
    }
    let how = How {
        ranks: Job::ranks(&args.job)?,
        link: link(&args.job)?,
        threads: wish.threads,
        clock: wish.clock,
        circumstances: Job::circumstances(&args.job, wish)?,
    };
    let known = args.sweep.as_deref().map(|file| Known::read(file, how)).transpose()?;
    let calls = wish.cells.iter().map(|&cell| Ok((cell, oracle(args, known.as_ref(), cell)?)));
    let calls = calls.collect::<Result<Vec<_>>>()?;
    let progress = session.progress("live eval", 2 * calls.len() as u64);
    let mut job = Job::start(&args.job, wish, session)?;
    let conditions = job.conditions().clone();
    let effort =
        Effort { least: args.rounds, most: args.most_rounds.max(args.rounds), bound: args.bound / 100.0 };
    let mut done = 0;
    let each = |cell: Cell, left: usize| {
        done += 1;
        progress.expect(done + left as u64);
        seen(&progress, cell)
    };
    let contests = compare(&mut job.meter(), &calls, &effort, each).map_err(told)?;
    drop(progress);
    Ok(Some(Compared { conditions, contests, ended: job.end() }))
}

/// On ranks that are started by turns: NCCL's own without, the policy's with so many threads.
fn by_turns(args: &LiveEvalArgs, wish: &Wish, threads: u32, session: &Session) -> Result<Option<Compared>> {
    ensure!(!args.against.contains(&LiveRival::Oracle), "--launch-threads: compare with nccl alone");
    let with = Wish { threads: Some(threads), counts: vec![threads], ..wish.clone() };
    let mut turns: Vec<Wish> = (0..TURNS).flat_map(|_| [wish.clone(), with.clone()]).collect();
    turns.iter_mut().enumerate().for_each(|(at, wish)| wish.start = at + 1);
    if Job::attend(&args.job, &turns, session)?.is_some() {
        return Ok(None);
    }
    let cells = &wish.cells;
    let progress = session.progress("live eval", (turns.len() * cells.len()) as u64);
    let rounds = args.most_rounds.max(args.rounds).div_ceil(TURNS);
    let (mut sides, mut conditions, mut ended) = ([Side::default(), Side::default()], None, Ok(()));
    for (turn, wish) in turns.iter().enumerate() {
        let mut job = Job::start(&args.job, wish, session)?;
        conditions = Some(job.conditions().clone());
        let each = |cell: Cell| seen(&progress, cell);
        sides[turn % 2].add(&mut job.meter(), cells, RIVALS[turn % 2], rounds, each).map_err(told)?;
        ended = job.end();
        if ended.is_err() {
            break;
        }
    }
    let [own, policy] = sides;
    let contests = contests(cells, own, policy);
    Ok(conditions.map(|conditions| Compared { conditions, contests, ended }))
}

fn seen(progress: &Progress, cell: Cell) -> Result<(), LiveError> {
    progress.remark(&cell.to_string());
    progress.advance(1).map_err(|_| LiveError::Stopped)
}

/// What the plugin of every rank is told.
fn variables(args: &LiveEvalArgs) -> Result<Vec<(String, String)>> {
    let absolute = |flag: &str, path: &Path| {
        path.canonicalize().map(|path| name(&path)).with_context(|| format!("{flag} {}", name(path)))
    };
    let policy = match args.policy.as_str() {
        SHIPPED => SHIPPED.to_owned(),
        file => absolute("--policy", file.as_ref())?,
    };
    let mut variables = vec![("DYNAMICCL_POLICY".to_owned(), policy)];
    if let Some(context) = &args.context {
        variables.push(("DYNAMICCL_CONTEXT".to_owned(), absolute("--context", context)?));
    }
    Ok(variables)
}

/// Where the best of a cell comes from.
fn oracle(args: &LiveEvalArgs, known: Option<&Known>, cell: Cell) -> Result<Oracle> {
    if !args.against.contains(&LiveRival::Oracle) {
        return Ok(Oracle::None);
    }
    let Some(known) = known else {
        let channels = CHANNELS.into_iter().filter_map(ChannelChoice::of).collect();
        return Ok(Oracle::Search(Tries { channels, chunks: vec![ChunkChoice::Own] }, SEARCH));
    };
    Ok(Oracle::Known(known.best(cell)?))
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    conditions: Conditions,
    policy: String,
    /// Threads of the policy's ranks, where these are not NCCL's own.
    launch_threads: Option<u32>,
    cells: Vec<Line>,
    speedup: Option<Ratio>,
    headroom: Option<Ratio>,
    /// Cells whose best setting NCCL cannot be handed.
    refused: usize,
    below: usize,
    /// Cells of which there are too few rounds to be sure of anything.
    unsure: usize,
    ok: bool,
    seconds: f64,
}

/// One call.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    cell: Cell,
    own_us: f64,
    policy_us: f64,
    knobs: String,
    speedup: Ratio,
    verdict: &'static str,
    rounds: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    oracle_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oracle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom: Option<Ratio>,
}

impl Line {
    fn new(contest: &Contest) -> Option<Self> {
        let speedup = contest.speedup()?;
        Some(Line {
            cell: contest.cell,
            own_us: contest.own.median(),
            policy_us: contest.policy.median(),
            knobs: contest.policy.handed.to_string(),
            speedup,
            verdict: verdict(contest, &speedup),
            rounds: contest.policy.rounds.len(),
            oracle_us: contest.oracle.as_ref().map(|oracle| oracle.median()),
            oracle: contest.oracle.as_ref().map(|oracle| oracle.handed.to_string()),
            headroom: contest.headroom(),
        })
    }
}

/// Said of a call where nothing is sure to 95 %.
const UNSURE: &str = "unsure";

/// What 95 % are sure of.
fn verdict(contest: &Contest, speedup: &Ratio) -> &'static str {
    if !contest.is_sure() {
        UNSURE
    } else if speedup.low > 1.0 {
        "faster"
    } else if speedup.high < 1.0 {
        "slower"
    } else {
        "as fast"
    }
}

/// What all calls together say.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    below: usize,
    unsure: usize,
    ok: bool,
}

impl Judged {
    /// Nobody is found guilty by times that are not sure.
    fn of(cells: &[Line], speedup: Option<Ratio>) -> Self {
        let is_sure = |line: &&Line| line.verdict != UNSURE;
        let below = cells.iter().filter(is_sure).filter(|line| line.speedup.high < FLOOR).count();
        let unsure = cells.len() - cells.iter().filter(is_sure).count();
        let slower = unsure == 0 && speedup.is_some_and(|speedup| speedup.high < 1.0);
        Judged { below, unsure, ok: below == 0 && !slower }
    }
}

impl Report {
    fn new(args: &LiveEvalArgs, conditions: Conditions, contests: &[Contest], seconds: f64) -> Self {
        let cells: Vec<Line> = contests.iter().filter_map(Line::new).collect();
        let headrooms: Vec<Ratio> = cells.iter().filter_map(|line| line.headroom).collect();
        let speedup = overall(contests);
        let Judged { below, unsure, ok } = Judged::of(&cells, speedup);
        let (policy, headroom) = (args.policy.clone(), Ratio::mean(&headrooms));
        let launch_threads = args.launch_threads;
        Report {
            conditions,
            policy,
            launch_threads,
            cells,
            speedup,
            headroom,
            refused: contests.iter().filter(|contest| contest.refused).count(),
            below,
            unsure,
            ok,
            seconds,
        }
    }
}

fn interval(ratio: &Ratio) -> String {
    format!("{:.3}-{:.3}", ratio.low, ratio.high)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conditions { ranks, link, gpu, nccl, .. } = &self.conditions;
        let with = self.launch_threads.map_or(String::new(), |threads| format!(" with {threads} threads"));
        writeln!(
            f,
            "# {ranks} ranks, link {link}, {gpu}, NCCL {nccl}, policy {}{with}{}",
            self.policy,
            self.conditions.told()
        )?;
        let mut table = Table::new([
            Column::left("collective"),
            Column::right("size"),
            Column::right("NCCL").unit("(us)"),
            Column::right("policy").unit("(us)"),
            Column::left("with"),
            Column::right("speed-up"),
            Column::right("95 %"),
            Column::left("verdict"),
            Column::right("rounds"),
            Column::right("oracle"),
        ]);
        for line in &self.cells {
            table.row([
                line.cell.collective.to_string(),
                Bytes(line.cell.bytes).to_string(),
                format!("{:.1}", line.own_us),
                format!("{:.1}", line.policy_us),
                line.knobs.clone(),
                format!("{:.3}", line.speedup.ratio),
                interval(&line.speedup),
                line.verdict.to_owned(),
                line.rounds.to_string(),
                line.headroom.map_or(String::new(), |headroom| format!("{:.3}", headroom.ratio)),
            ]);
        }
        write!(f, "{table}")?;
        if let Some(headroom) = &self.headroom {
            writeln!(f, "# the best settings: {:.3} ({})", headroom.ratio, interval(headroom))?;
        }
        if self.refused > 0 {
            writeln!(
                f,
                "# NCCL cannot be handed the best setting of {}",
                counted(self.refused as u32, "cell")
            )?;
        }
        let count = self.cells.len();
        let Some(speedup) = &self.speedup else { return writeln!(f, "Summary  nothing was compared") };
        if self.unsure > 0 {
            let cells = counted(self.unsure as u32, "cell");
            writeln!(
                f,
                "# {cells} with fewer than {SURE} rounds, of which nothing is sure; give more --most-rounds"
            )?;
        }
        writeln!(
            f,
            "Summary  {:.3} ({}) times as fast as NCCL's own, geometric mean of {count} cells; {} significantly below \
             {FLOOR}; {:.0} s",
            speedup.ratio,
            interval(speedup),
            self.below,
            self.seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_live::measure::Measured;
    use dynamiccl_spec::{Collective, Knobs, Order};

    use super::*;

    /// So many rounds, or starts, in which the policy is 0.8 times as fast.
    fn slow(rounds: usize, starts: usize) -> (&'static str, Judged) {
        let side = |order, us: f64| Measured {
            rounds: vec![us; rounds],
            starts: vec![us; starts],
            ..Measured::new(order, Knobs::OWN)
        };
        let cell = Cell { collective: Collective::AllReduce, bytes: 1024 };
        let (own, policy) = (side(Order::Own, 80.0), side(Order::Policy, 100.0));
        let contest = Contest { cell, own, policy, oracle: None, refused: false };
        let line = Line::new(&contest).unwrap();
        (line.verdict, Judged::of(&[line], overall(&[contest])))
    }

    /// No interval of so few holds 95 %: five rounds agree by luck in one of sixteen cases.
    #[test]
    fn of_few_rounds_nothing_is_sure() {
        assert_eq!(slow(5, 0), ("unsure", Judged { below: 0, unsure: 1, ok: true }));
        for (rounds, starts) in [(6, 0), (3, 3)] {
            assert_eq!(slow(rounds, starts), ("slower", Judged { below: 1, unsure: 0, ok: false }));
        }
    }
}
