//! `docs/state.md`: generated from the catalogue of features, heads, gates and reward terms.
//!
//! With INSTA_UPDATE=always, as for every other snapshot, the page is written anew.

use std::fmt::Write;

use dynamiccl_env::reward;
use dynamiccl_spec::features::{
    Block, CALL_WIDTH, CONTEXT_WIDTH, FEATURES, Feature, HISTORY_WIDTH, JOB_WIDTH, Kind, Origin, Part,
    VERSION, hash,
};
use dynamiccl_spec::{Gate, Head};

use crate::util::{assert_same, repository, repository_path};

const PAGE: &str = "docs/state.md";

#[test]
fn the_state_page_is_what_the_encoder_says() {
    let fresh = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(repository_path(PAGE), fresh).expect("write docs/state.md");
    } else {
        assert_same(&fresh, &repository(PAGE));
    }
}

fn page() -> String {
    let mut page = format!(
        "# What a policy sees and does\n\n\
         <!-- Generated: INSTA_UPDATE=always cargo test --release --workspace --locked -->\n\n\
         Encoding `{VERSION}`, hash `{:016x}`. A policy file that was trained with another hash is refused, \
         but for those of `feat-v1` and `feat-v2`, which lack the last numbers of a call.\n\n\
         A row has two parts. The *context* of a call ({CONTEXT_WIDTH} numbers: {JOB_WIDTH} of the job, \
         {CALL_WIDTH} of the call) is all that a decision looks at, and every number in it is the same on \
         every rank by construction. The *history* ({HISTORY_WIDTH} numbers) describes the call before and \
         what was measured of it; it feeds the LSTM and reaches a decision only through its state.\n\n\
         \"Unknown\" is what a feature looks like where a deployment does not say it. Policies are trained \
         with it: the share of jobs that say nothing is in the curriculum (`[hidden]`).\n",
        hash()
    );
    for block in Block::ALL {
        let _ = write!(page, "\n## {}\n\n{HEADING}", block.name());
        FEATURES.iter().filter(|feature| feature.block == block).for_each(|f| page.push_str(&row(f)));
    }
    let inert = FEATURES.iter().filter(|feature| feature.mechanism.starts_with("none"));
    let inert: Vec<_> = inert.map(|feature| format!("`{}`", feature.name)).collect();
    let _ = write!(page, "\nInert, because no time depends on what they stand for: {}.\n", inert.join(", "));
    page + &actions() + &gates() + &reward_terms()
}

const HEADING: &str = "| feature | numbers | range | from | unknown | what its cause changes in the simulator |\n\
                       |---|---|---|---|---|---|\n";

fn row(feature: &Feature) -> String {
    let [low, high] = feature.range();
    let numbers = match feature.kind {
        Kind::Scalar { of, .. } => of.to_owned(),
        Kind::Vector { len, of, .. } => format!("{len}: {of}"),
        Kind::Flag => "unknown, no, yes".to_owned(),
        Kind::Word(label, len) => (0..len).filter_map(label).collect::<Vec<_>>().join(", "),
    };
    let from = match (feature.origin, feature.part) {
        (Origin::Measured, _) => "measured, history",
        (Origin::RankInvariant, Part::History) => "rank-invariant, history",
        (Origin::RankInvariant, _) => "rank-invariant, context",
    };
    let numbers = numbers.replace('|', "\\|");
    format!(
        "| `{}` | {numbers} | {low} to {high} | {from} | {} | {} |\n",
        feature.name, feature.unknown, feature.mechanism
    )
}

fn actions() -> String {
    let mut text =
        "\n## Actions\n\nOne choice per head, in this order; each head is conditioned on the ones \
                    before. Threads are chosen at the first call of a process and kept: later calls \
                    have only the first choice. The path is NCCL's, or in-network aggregation where a gate says \
                    so; a synthesised schedule may be chosen only where a runtime can run one for the call, and \
                    then NCCL's knobs mean nothing.\n\n| head | choices |\n|---|---|\n"
            .to_owned();
    for &head in Head::ALL {
        let labels: Vec<_> = (0..head.size()).filter_map(|index| head.label(index)).collect();
        let _ = writeln!(text, "| `{head}` | {} |", labels.join(", "));
    }
    text
}

fn gates() -> String {
    let mut text =
        "\n## Gates\n\nA gate takes choices away before a policy is asked, whatever its network says. \
                    `info` counts the calls at which each did.\n\n| gate | what it does |\n|---|---|\n"
            .to_owned();
    for &gate in Gate::ALL {
        let does = match gate {
            Gate::InNetwork => "switches aggregate: reductions are passed through to them",
            Gate::ForeignLibrary => "another library than NCCL carries the call: it keeps its default",
            Gate::Unavailable => {
                "a pair that NCCL marks as unavailable is never chosen; hardly a machine has all of them, so this fires at nearly every call"
            }
            Gate::Deterministic => {
                "with determinism asked for, reductions inside switches (NVLS, CollNet) are refused: they \
                 may add in another order from one call to the next"
            }
            Gate::UserOverride => "what the user has fixed (NCCL_ALGO, NCCL_PROTO, NCCL_NTHREADS, …) stands",
        };
        let _ = writeln!(text, "| `{gate}` | {does} |");
    }
    text
}

fn reward_terms() -> String {
    let mut text =
        "\n## Reward\n\nThe sum of eight terms, each in `info`; their weights are in the curriculum. \
                    All are zero for calls that NCCL does not tune.\n\n| term | what it is |\n|---|---|\n"
            .to_owned();
    for name in reward::NAMES {
        let is = match name {
            "time" => "− true time ÷ true time of NCCL's own choice in the same conditions, clipped",
            "switch" => {
                "− weight where another launch runs (pair, channels, threads, chunk or path) than in the last call of the same communicator, collective and size octave"
            }
            "congestion" => "− weight × queues that own channels have filled before the call, 0 to 1",
            "probe" => "− weight where the action was sampled and is not the policy's preference",
            "convergence" => {
                "− weight × min(1 ÷ \\|loss change\\|, cap) ÷ cap on a synthetic loss; no knob changes it"
            }
            "sm" => {
                "− weight × µs that compute beside the call lost to its channels ÷ time of NCCL's own choice"
            }
            "tier" => {
                "− weight × what the setting demands of links (Simple, larger chunks, channels) × distance, 0 to 1"
            }
            "fault" => "− weight where a fault struck during the call",
            other => panic!("nobody has described the term {other}"),
        };
        let _ = writeln!(text, "| `{name}` | {is} |");
    }
    text
}
