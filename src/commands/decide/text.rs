//! The result of `decide` as text: a table for each collective, NCCL's choice left, the policy's right.

use std::fmt;

use dynamiccl_spec::Bytes;

use super::report::{Answer, Launch, Report};
use crate::table::{Column, Table};
use crate::words::counted;

const COLUMNS: [Column; 11] = [
    Column::right("size").unit("(B)"),
    Column::left("nccl"),
    Column::right("nch"),
    Column::right("time").unit("(us)"),
    Column::left("chosen"),
    Column::right("nch"),
    Column::right("chunk").unit("(B)"),
    Column::right("estimate").unit("(us)"),
    Column::right("time").unit("(us)"),
    Column::right("vs nccl"),
    Column::left("why"),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { policy, file, cluster, description, tier, .. } = self;
        writeln!(f, "# {policy} ({file}) on {cluster}: {description}")?;
        let (nodes, ranks) = (counted(self.nodes, "node"), counted(self.ranks, "rank"));
        let told = if self.told { "the topology" } else { "only what NCCL says" };
        writeln!(f, "# {nodes}, {ranks}, tier {tier}; NCCL {}; the policy knows {told}", self.nccl_version)?;
        writeln!(f, "# times are simulated, world nominal, constants {}", self.constants)?;
        for answers in self.answers.chunk_by(|a, b| a.collective == b.collective) {
            writeln!(f, "#\n# {}", answers[0].collective)?;
            let mut table = Table::new(COLUMNS);
            answers.iter().for_each(|answer| table.row(row(answer)));
            write!(f, "{table}")?;
        }
        self.summary(f)
    }
}

impl Report {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = self.answers.iter().filter(|answer| !answer.is_own()).count();
        let calls = self.answers.len();
        writeln!(f, "Summary  {policy} differs from NCCL in {other} of {calls} calls", policy = self.policy)?;
        writeln!(f, "         {}", self.launch.text())?;
        let worst = self.answers.iter().min_by(|a, b| a.speedup.total_cmp(&b.speedup));
        let best = self.answers.iter().max_by(|a, b| a.speedup.total_cmp(&b.speedup));
        let Some((worst, best)) = worst.zip(best).filter(|_| other > 0) else { return Ok(()) };
        writeln!(f, "         simulated against NCCL: at best {}, at worst {}", said(best), said(worst))
    }
}

fn said(answer: &Answer) -> String {
    format!("{:.2}x ({} {})", answer.speedup, answer.collective, Bytes(answer.bytes))
}

fn row(answer: &Answer) -> [String; COLUMNS.len()] {
    let Answer { nccl, chosen, .. } = answer;
    let pair = |launch: &Launch| launch.pair.to_string();
    let by_nccl = |text: String| if answer.is_scheduled() { "-".to_owned() } else { text };
    [
        answer.bytes.to_string(),
        pair(nccl),
        nccl.nchannels.to_string(),
        format!("{:.2}", nccl.time_us),
        match answer {
            answer if answer.is_scheduled() => "synthesised".to_owned(),
            answer if answer.is_own() => "=".to_owned(),
            _ => pair(chosen),
        },
        by_nccl(chosen.nchannels.to_string()),
        by_nccl(chosen.chunk_bytes.to_string()),
        format!("{:.2}", answer.estimate_us),
        format!("{:.2}", chosen.time_us),
        format!("{:.2}", answer.speedup),
        answer.reason.clone(),
    ]
}
