//! The same call at each tier, as text.

use dynamiccl_env::evaluate::tiers::{AtTier, LIMIT, Launch, SameCall, SameCalls};
use dynamiccl_spec::Bytes;

use crate::table::{Column, Table};
use crate::words::percent;

const COLUMNS: [Column; 11] = [
    Column::left("collective"),
    Column::right("size"),
    Column::right("tier"),
    Column::left("nccl"),
    Column::left("oracle, most"),
    Column::left("chosen, most"),
    Column::right("speedup").unit("(x)"),
    Column::right("regret").unit("(%)"),
    Column::right("hold").unit("(%)"),
    Column::right("bayes").unit("(%)"),
    Column::left("within 5 %"),
];

/// The table, under a line that says what it is.
pub fn table(same: &SameCalls) -> String {
    let mut table = Table::new(COLUMNS);
    for call in &same.calls {
        call.tiers.iter().for_each(|at| table.row(row(call, at)));
    }
    let machines: Vec<_> =
        SameCalls::machines().map(|(cluster, nodes)| format!("{nodes} x {cluster}")).collect();
    format!(
        "#\n# the same call at each tier, for {}: {}\n# knobs are algorithm/protocol, channels x chunk\n#\n{table}",
        same.tuner,
        machines.join(", ")
    )
}

/// One line on it.
pub fn verdict(same: &SameCalls) -> String {
    let SameCalls { tuner, cells, within, oracle_differs, differs, passed, .. } = same;
    let worst = same.worst().map_or_else(String::new, |(call, at)| {
        let (regret, size) = (percent(at.regret), Bytes(call.bytes));
        format!(", at worst {regret} % ({} {size} at tier {})", call.collective, at.tier)
    });
    let limit = percent(LIMIT);
    format!(
        "the same call at each tier: {tuner} has different knobs for {differs} of the {oracle_differs} calls for \
         which the oracle has, and is within {limit} % of the oracle in {within} of {cells}{worst}: {}",
        answer(*passed)
    )
}

/// Knobs as people say them.
pub fn launch(launch: &Launch) -> String {
    let Launch { pair, nchannels, chunk_bytes, .. } = launch;
    format!("{pair}, {nchannels} x {}", Bytes(*chunk_bytes))
}

/// Yes or no.
pub fn answer(passed: bool) -> &'static str {
    if passed { "yes" } else { "no" }
}

fn row(call: &SameCall, at: &AtTier) -> [String; COLUMNS.len()] {
    [
        call.collective.to_string(),
        Bytes(call.bytes).to_string(),
        at.tier.to_string(),
        launch(&at.nccl),
        format!("{} ({} %)", launch(&at.oracle), percent(at.oracle_share)),
        launch(&at.chosen),
        format!("{:.3}", at.speedup),
        percent(at.regret),
        at.regret_hold.map_or_else(|| "-".to_owned(), percent),
        at.bayes_regret.map_or_else(|| "-".to_owned(), percent),
        answer(at.regret <= LIMIT).to_owned(),
    ]
}
