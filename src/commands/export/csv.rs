//! A tuner's answers on one machine, as a table for NVIDIA's example tuner.
//!
//! Every rule says how many channels: NVIDIA's plugin makes one channel of anything else, and of calls
//! that no rule is for. So NCCL's own choices are written down too.

use dynamiccl_env::asking::Asking;
use dynamiccl_policies::nccl_csv::{Channels, LONGEST_LINE, Line, Rule, Table};
use dynamiccl_spec::{Collective, Tuner};

use super::ranges::{self, Range};

/// A table and what it cannot say.
#[derive(Debug)]
pub struct Export {
    /// The table.
    pub table: Table,
    /// Whether the tuner wants more somewhere than a table can say.
    pub more: bool,
}

/// The answers of a tuner on a communicator, under these remarks.
pub fn export(tuner: &mut dyn Tuner, asking: &Asking, remarks: &[String]) -> Export {
    let mut lines: Vec<Line> = remarks.iter().map(|text| Line::Remark(remark(text))).collect();
    let mut more = false;
    for collective in Collective::TUNED {
        let answers = ranges::of(tuner, asking, collective);
        more |= answers.more;
        lines.extend(answers.ranges.iter().map(|range| Line::Rule(rule(collective, range, asking))));
    }
    Export { table: Table { lines }, more }
}

fn rule(collective: Collective, range: &Range, asking: &Asking) -> Rule {
    let (communicator, launch) = (asking.communicator(), range.launch);
    // NCCL has at most 64.
    let channels = Channels::Exactly(u8::try_from(launch.channels).unwrap_or(u8::MAX));
    let rule = Rule::new(collective, [range.min, range.max], launch.pair, channels);
    rule.on(communicator.nodes(), communicator.ranks())
}

/// A comment on one line that NVIDIA's reader does not cut.
fn remark(text: &str) -> String {
    let mut line = format!("# {}", text.replace(|c: char| c.is_control(), " "));
    while line.len() > LONGEST_LINE {
        line.pop();
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dynamiccl_env::cluster::{Cluster, CommOptions};
    use dynamiccl_env::job::Shown;
    use dynamiccl_policies::guard::Guard;
    use dynamiccl_policies::nccl_csv::TableTuner;
    use dynamiccl_policies::network::{Shape, Weights};
    use dynamiccl_policies::policy::{Policy, PolicyTuner};
    use dynamiccl_policies::random::Random;
    use dynamiccl_spec::Head;

    use super::*;

    /// A policy that decides something everywhere, and nothing sensible.
    fn policy(seed: u64) -> PolicyTuner {
        let mut weights = Weights::untrained(Shape::default());
        let mut random = Random::new(seed);
        for (name, _) in Shape::default().tensors() {
            let tensor = weights.get_mut(name).expect("a tensor of the network");
            tensor.iter_mut().for_each(|x| *x += 0.1 * random.normal() as f32);
        }
        PolicyTuner::new(Arc::new(Policy::new("random", &weights, Guard::Off, seed)), None)
    }

    fn asking(cluster: &str, nodes: u32) -> Asking {
        let cluster = Cluster::load(cluster).unwrap();
        Asking::new(&cluster, nodes, &CommOptions::default(), Shown::NOTHING).unwrap()
    }

    #[test]
    fn a_table_decides_as_the_policy_that_it_was_made_of() {
        let mut random = Random::new(9);
        let (mut pairs, mut chosen) = (std::collections::BTreeSet::new(), 0);
        for (seed, cluster, nodes) in [(1, "dgx_h100", 1), (2, "dgx_a100", 4), (3, "tcp25g_1gpu", 8)] {
            let (asking, mut policy) = (asking(cluster, nodes), policy(seed));
            let text = export(&mut policy, &asking, &["x".repeat(500)]).table.to_string();
            let table = Table::parse(&text).unwrap();
            assert_eq!(table.to_string(), text);
            let mut tuner = TableTuner::new("table", &table);
            for _ in 0..2000 {
                let collective = Collective::TUNED[random.below(Collective::TUNED.len())];
                let most = 1 << (10 + random.below(25));
                let bytes = 1024 + random.below(most) as u64;
                let mut asked = asking.call(collective, bytes, 1);
                // With threads that a table cannot set, a pair has other channels.
                asked.gated.mask = asked.gated.mask.only(Head::Chunk, 0).only(Head::Threads, 0);
                let query = asking.query(&asked);
                let wanted = policy.decide(&query, &mut |_| None).knobs;
                let wanted = asking.realise(&asked, &wanted).unwrap();
                let rule = *tuner.rule(&query).unwrap();
                let expected = (wanted.pair, Channels::Exactly(wanted.max_channels as u8));
                assert_eq!((rule.pair, rule.channels), expected, "{cluster} {collective} {bytes}");
                let decided = tuner.decide(&query, &mut |_| None).knobs;
                let ran = asking.realise(&asked, &decided).unwrap();
                assert_eq!(ran.pair, wanted.pair);
                if rule.channels.choice().requested() == Some(wanted.max_channels) {
                    assert_eq!(ran.channels, wanted.channels, "{cluster} {collective} {bytes}");
                    chosen += 1;
                }
                pairs.insert(wanted.pair);
            }
        }
        assert!(pairs.len() > 4 && chosen > 3000, "{pairs:?} {chosen}");
    }

    #[test]
    fn nothing_is_left_to_nvidias_plugin() {
        let asking = asking("dgx_h100", 2);
        let mut untrained = PolicyTuner::new(
            Arc::new(Policy::new("nccl", &Weights::untrained(Shape::default()), Guard::default(), 0)),
            None,
        );
        let table = export(&mut untrained, &asking, &[]).table;
        for collective in Collective::TUNED {
            let rules: Vec<&Rule> = table.rules().filter(|rule| rule.collective == collective).collect();
            assert_eq!(rules.first().map(|rule| rule.min_bytes), Some(0), "{collective}");
            assert_eq!(rules.last().map(|rule| rule.max_bytes), Some(Rule::OPEN));
            assert!(rules.windows(2).all(|pair| pair[0].max_bytes + 1 == pair[1].min_bytes));
            assert!(rules.iter().all(|rule| matches!(rule.channels, Channels::Exactly(1..))));
            // An untrained policy is NCCL's default, and so is its table.
            for bytes in [1 << 10, 1 << 16, 3 << 20, 1 << 30, 8 << 30_u64] {
                let own = asking.communicator().decide(collective, bytes, 1).unwrap();
                let rule =
                    rules.iter().find(|rule| (rule.min_bytes..=rule.max_bytes).contains(&bytes)).unwrap();
                assert_eq!((rule.pair, rule.channels), (own.pair, Channels::Exactly(own.channels as u8)));
            }
        }
    }
}
