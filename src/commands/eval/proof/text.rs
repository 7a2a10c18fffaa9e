//! What `eval --proof tiers` found, as text.

use std::fmt;

use dynamiccl_env::evaluate::tiers::{Contrast, SWAP};
use dynamiccl_spec::Bytes;

use super::report::{Equal, Report, Told};
use crate::commands::eval::same_call::{self, answer, launch};
use crate::table::{Column, Table};
use crate::words::percent;

const CONTRASTS: [Column; 10] = [
    Column::left("collective"),
    Column::right("size"),
    Column::right("NICs").unit("(Gb/s)"),
    Column::left("tiers"),
    Column::left("best near"),
    Column::left("best far"),
    Column::right("swapped").unit("(%)"),
    Column::right("shared").unit("(%)"),
    Column::left("chosen near"),
    Column::left("chosen far"),
];

const TOLD: [Column; 5] = [
    Column::left("tuner"),
    Column::right("regret").unit("(%)"),
    Column::right("hold").unit("(%)"),
    Column::left("regret at tiers 2, 3, 4").unit("(%)"),
    Column::left("hold at tiers 2, 3, 4").unit("(%)"),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seeds, worlds, policy, equal_tables: equal, .. } = self;
        writeln!(f, "# simulated: {policy}, {seeds} seeds of {worlds} worlds")?;
        write!(f, "{}", same_call::table(&self.same_call))?;
        let swap = percent(SWAP);
        writeln!(
            f,
            "#\n# NCCL's table held equal: 8 A100 over the same NICs, with the latency of tier 2, 3 or 4"
        )?;
        writeln!(
            f,
            "# calls for which taking the best fixed knobs of one tier at the other costs over {swap} %"
        )?;
        let mut table = Table::new(CONTRASTS);
        equal.compared.contrasts.iter().for_each(|contrast| table.row(row(contrast)));
        write!(
            f,
            "#\n{table}#\n# what it is worth to be told the tier, over all calls of these machines\n#\n"
        )?;
        let mut table = Table::new(TOLD);
        equal.tuners.iter().for_each(|told| table.row(told_row(told)));
        write!(f, "{table}")?;
        writeln!(f, "Summary  {}", same_call::verdict(&self.same_call))?;
        writeln!(f, "         {}", follows(equal))?;
        writeln!(f, "         {}", hiding(equal))?;
        writeln!(f, "Verdict  {}", answer(self.passed))
    }
}

fn follows(equal: &Equal) -> String {
    let compared = &equal.compared;
    let by_world = &compared.by_world;
    format!(
        "with equal tables no knobs are within {} % of the best of a world at both tiers in {} of {} calls at two tiers of \
         a world, the policy's differ in {} of these: {} (of the {} whose best knobs differ, in {}; the best fixed knobs \
         of all worlds differ in {} of {} calls, the policy's most frequent ones in {} of these, without feedback in {})",
        percent(SWAP),
        by_world.must_differ,
        by_world.pairs,
        by_world.differs_there,
        answer(equal.follows),
        by_world.oracle_differs,
        by_world.differs,
        compared.oracle_differs,
        compared.pairs,
        compared.differs,
        compared.held_differs
    )
}

fn hiding(equal: &Equal) -> String {
    let [told, untold, ..] = &equal.tuners[..] else { return "nothing was hidden".to_owned() };
    format!(
        "hiding the tier takes regret from {} to {} %, and without feedback from {} to {} %: {}",
        percent(told.regret),
        percent(untold.regret),
        percent(told.regret_hold),
        percent(untold.regret_hold),
        answer(equal.hiding_hurts)
    )
}

fn row(contrast: &Contrast) -> [String; CONTRASTS.len()] {
    let Contrast { gbits, collective, bytes, tiers, best, chosen, swap, shared, differs, .. } = contrast;
    let far = if *differs { launch(&chosen[1]) } else { "= near".to_owned() };
    [
        collective.to_string(),
        Bytes(*bytes).to_string(),
        gbits.to_string(),
        format!("{} {}", tiers[0], tiers[1]),
        launch(&best[0]),
        launch(&best[1]),
        percent(*swap),
        percent(*shared),
        launch(&chosen[0]),
        far,
    ]
}

fn told_row(told: &Told) -> [String; TOLD.len()] {
    let by_tier = |of: fn(&super::report::AtTier) -> f64| {
        told.tiers.iter().map(|at| percent(of(at))).collect::<Vec<_>>().join(", ")
    };
    [
        told.name.clone(),
        percent(told.regret),
        percent(told.regret_hold),
        by_tier(|at| at.regret),
        by_tier(|at| at.regret_hold),
    ]
}
