//! Tables are read as NVIDIA's plugin reads them, come back as they were, and decide as it means to.

use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{
    Algorithm::{self, *},
    ChannelChoice, Collective, CostTable, Decision, Fallback, Gate, Gates, JobContext, Overrides, Pair,
    Protocol::{self, *},
    Query, Reason, Topology, Tuner,
};

use super::*;
use crate::random::Random;

/// Every form that the configuration shipped with NCCL has: comments, empty lines, 8 to 10 columns, any
/// value for whatever may have one.
const SAMPLE: &str = "\
# names of columns, in a comment
#

allreduce,0,65536,tree,simple,2,1,-1,-1,1
allreduce,65537,1048576,ring,simple,4,4,32,1,0
allreduce,1048577,4294967295,ring,ll128,-1,-1,-1,4,-1
# a remark between rules
broadcast,0,32768,tree,simple,-1,1,-1,-1,1
allgather,0,4294967295,ring,simple,4,2,-1
reducescatter,131073,18446744073709551615,nvls,simple,0,-1,-1,2
reduce,0,4294967295,ring,ll,1,-1,-1

";

fn refused(line: &str) -> Fault {
    let error = Table::parse(&format!("# one\n{line}\n")).unwrap_err();
    assert_eq!(error.line, 2);
    error.fault
}

#[test]
fn a_table_comes_back_as_it_was() {
    let table = Table::parse(SAMPLE).unwrap();
    assert_eq!(table.to_string(), SAMPLE);
    let rules: Vec<_> = table.rules().collect();
    assert_eq!(rules.len(), 7);
    let first = rules[0];
    assert_eq!((first.collective, first.min_bytes, first.max_bytes), (Collective::AllReduce, 0, 65536));
    assert_eq!((first.pair, first.channels), (Pair::new(Tree, Simple), Channels::Exactly(2)));
    assert_eq!(
        (first.nodes, first.ranks, first.pipelined, first.registered),
        (Some(1), None, None, Some(true))
    );
    assert_eq!((rules[2].channels, rules[5].channels), (Channels::Meant, Channels::Own));
    assert_eq!(rules[5].max_bytes, Rule::OPEN);
}

#[test]
fn spaces_heads_and_endings_of_lines_do_not_matter() {
    let text = "collective_type,min_bytes,max_bytes\r\n allreduce , 0,\t-1 ,ring, ll ,+4,-1,-1\r\n  # end";
    let table = Table::parse(text).unwrap();
    let expected =
        "collective_type,min_bytes,max_bytes\nallreduce,0,18446744073709551615,ring,ll,4,-1,-1\n  # end\n";
    assert_eq!(table.to_string(), expected);
    assert_eq!(Table::parse(expected).unwrap(), table);
}

#[test]
fn what_nvidias_reader_would_take_for_something_else_is_refused() {
    assert_eq!(refused("allreduce,0,1,ring,ll,1,-1"), Fault::Columns { found: 7 });
    assert_eq!(refused("allreduce,0,1,ring,ll,1,-1,-1,-1,-1,x"), Fault::Columns { found: 11 });
    let message = |line: &str| refused(line).to_string();
    let rest = "0,1,ring,ll,1,-1,-1";
    assert!(message(&format!("allredcue,{rest}")).contains("did you mean \"allreduce\"?"));
    assert!(message(&format!("AllReduce,{rest}")).contains("did you mean \"allreduce\"?"));
    assert_eq!(refused(&format!("alltoall,{rest}")), Fault::Untuned("alltoall"));
    assert!(message("allreduce,0,1,rng,ll,1,-1,-1").contains("did you mean \"ring\"?"));
    assert!(message("allreduce,0,1,ring,LL,1,-1,-1").contains("did you mean \"ll\"?"));
    assert_eq!(refused("allreduce,9,1,ring,ll,1,-1,-1"), Fault::EmptyRange { min: 9, max: 1 });
    let number = |line: &str, wrong: &str| match refused(line) {
        Fault::Number { column, .. } => assert_eq!(column, wrong, "{line}"),
        other => panic!("{line}: {other}"),
    };
    number("allreduce,-1,1,ring,ll,1,-1,-1", "min_bytes");
    number("allreduce,0,64K,ring,ll,1,-1,-1", "max_bytes");
    number("allreduce,0,18446744073709551616,ring,ll,1,-1,-1", "max_bytes");
    number("allreduce,0,1,ring,ll,65,-1,-1", "channels");
    number("allreduce,0,1,ring,ll,,-1,-1", "channels");
    number("allreduce,0,1,ring,ll,1,0,-1", "nNodes");
    number("allreduce,0,1,ring,ll,1,-1,-2", "nRanks");
    number("allreduce,0,1,ring,ll,1,-1,-1,x", "numPipeOps");
    number("allreduce,0,1,ring,ll,1,-1,-1,1,2", "regBuff");
    let long = "#".repeat(LONGEST_LINE + 1);
    assert_eq!(refused(&long), Fault::TooLong { found: LONGEST_LINE + 1 });
    assert!(Table::parse(&long[1..]).is_ok());
    assert_eq!(refused("# a\0b"), Fault::ZeroByte);
}

/// A text of parts that rules are made of, mostly in their order.
fn scribble(random: &mut Random) -> String {
    let words = [
        &["allreduce", "reduce", "allgather", " broadcast", "reducescatter", "alltoall", "#x", ""][..],
        &["0", "1", "65537", "4294967296", " 7"],
        &["18446744073709551615", "-1", "99999999999", "12", "8 "],
        &["tree", "ring", "nvls", "nvls_tree", "pat", "collnet_direct", "collnet_chain", "ringo"],
        &["ll", "ll128", "simple", "\tsimple", "LL"],
        &["-1", "0", "1", "24", "64", "+3", "65"],
        &["-1", "1", "2", "2147483647", "007"],
        &["-1", "16", "0"],
        &["-1", "4"],
        &["-1", "0", "1", "2"],
    ];
    let pick = |random: &mut Random, from: &[&str]| {
        let most = from.len().min(1 + random.below(9));
        from[random.below(most)].to_owned()
    };
    let mut text = String::new();
    for _ in 0..random.below(4) {
        let columns = [8, 9, 10, 10, 1, 7][random.below(6)];
        let fields: Vec<String> = words[..columns].iter().map(|from| pick(random, from)).collect();
        text += &fields.join(",");
        text += ["\n", "\r\n", " \n", "\n\n", "\n# é\n", "\r\r\n"][random.below(6)];
    }
    text
}

#[test]
fn printing_what_was_read_changes_nothing() {
    let (mut random, mut accepted) = (Random::new(3), 0);
    for _ in 0..20_000 {
        let text = scribble(&mut random);
        let Ok(table) = Table::parse(&text) else { continue };
        let printed = table.to_string();
        let again = Table::parse(&printed).unwrap();
        assert_eq!((&again, again.to_string()), (&table, printed), "{text:?}");
        accepted += usize::from(table.rules().next().is_some());
    }
    assert!(accepted > 2000, "{accepted}");
}

/// What a table decides for an allreduce on 2 nodes with 16 ranks where ring and tree are there.
fn decided(text: &str, bytes: u64, pipelined: u32, overrides: Overrides) -> Decision {
    let mut table = CostTable::default();
    for (algorithm, protocol) in [(Ring, LL), (Ring, Simple), (Tree, Simple)] as [(Algorithm, Protocol); 3] {
        table.set(Pair::new(algorithm, protocol), 10.0 + algorithm.id() as f32);
    }
    let collective = Collective::AllReduce;
    let gated = Gates::new(&Topology::default(), false, overrides).narrow(collective, &table);
    let call =
        CallContext { collective, bytes, pipelined, table, pairs: gated.mask.pairs(), synthesised: None };
    let (encoder, past) = (Encoder::new(&JobContext::default()), PastCall::default());
    let query = Query {
        communicator: 0,
        ranks: 16,
        nodes: 2,
        encoder: &encoder,
        call: &call,
        gated: &gated,
        past: &past,
    };
    let mut tuner = TableTuner::new("table", &Table::parse(text).unwrap());
    tuner.decide(&query, &mut |_| panic!("a table measures nothing"))
}

#[test]
fn the_first_rule_that_matches_and_can_run_wins() {
    let pair = |text: &str, bytes| {
        let decision = decided(text, bytes, 1, Overrides::default());
        (decision.knobs.pair.unwrap().to_string(), decision.knobs.channels.requested(), decision.reason)
    };
    let rules = "allreduce,0,100,ring,ll,4,-1,-1\nallreduce,0,200,ring,simple,8,-1,-1\n";
    assert_eq!(pair(rules, 100), ("ring/ll".to_owned(), Some(4), Reason::Policy));
    assert_eq!(pair(rules, 101), ("ring/simple".to_owned(), Some(8), Reason::Policy));
    let own = ("tree/simple".to_owned(), None, Reason::Fallback(Fallback::NoEntry));
    assert_eq!(pair(rules, 201), own);
    // NCCL has no NVLS here, so the rule after it counts.
    let unavailable = format!("allreduce,0,-1,nvls,simple,4,-1,-1\n{rules}");
    assert_eq!(pair(&unavailable, 100).0, "ring/ll");
    for other in [
        "reduce,0,-1,ring,ll,4,-1,-1",
        "allreduce,0,-1,ring,ll,4,3,-1",
        "allreduce,0,-1,ring,ll,4,2,8",
        "allreduce,0,-1,ring,ll,4,2,16,2",
        "allreduce,0,-1,ring,ll,4,2,16,1,1",
    ] {
        assert_eq!(pair(other, 100), own, "{other}");
    }
    assert_eq!(pair("allreduce,0,-1,ring,ll,4,2,16,1,0", 100).0, "ring/ll");
}

#[test]
fn sizes_above_4_gib_match_an_open_range_and_not_the_shipped_one() {
    let reason = |end: &str| {
        decided(&format!("allreduce,0,{end},ring,ll,4,-1,-1"), 5 << 30, 1, Overrides::default()).reason
    };
    assert_eq!(reason("4294967295"), Reason::Fallback(Fallback::NoEntry));
    assert_eq!(reason("18446744073709551615"), Reason::Policy);
    assert_eq!(reason("-1"), Reason::Policy);
}

#[test]
fn counts_between_two_choices_are_rounded_up() {
    let choice = |n| Channels::Exactly(n).choice().requested();
    assert_eq!([1, 3, 4, 10, 20, 33, 64].map(choice), [1, 4, 4, 12, 24, 64, 64].map(Some));
    assert_eq!((Channels::Own.choice(), Channels::Meant.choice()), (ChannelChoice::OWN, ChannelChoice::OWN));
}

#[test]
fn what_the_user_has_fixed_stands() {
    let mut overrides = Overrides::default();
    overrides.set("NCCL_MAX_NCHANNELS", "8").unwrap();
    let decision = decided("allreduce,0,-1,ring,ll,4,-1,-1", 100, 1, overrides);
    assert_eq!(
        (decision.knobs.channels, decision.reason),
        (ChannelChoice::OWN, Reason::Gate(Gate::UserOverride))
    );
}
