//! A table as a tuner: what NVIDIA's example plugin does with it, as its documentation means it.
//!
//! The first rule that matches and whose pair NCCL has wins, as there. In two things this is the patched
//! plugin and not the shipped one, which sets one channel before it looks: where no rule matches, the call
//! is NCCL's; and -1 channels are NCCL's own count. A table is thus never judged by that fault.

use dynamiccl_spec::{ChannelChoice, Decision, Fallback, Head, Knobs, Measure, Query, Reason, Tuner};

use super::rule::{Channels, Rule};
use super::table::Table;

/// Decides by a table.
#[derive(Debug, Clone)]
pub struct TableTuner {
    name: String,
    rules: Vec<Rule>,
}

impl TableTuner {
    /// A tuner that goes by this table.
    pub fn new(name: impl Into<String>, table: &Table) -> Self {
        TableTuner { name: name.into(), rules: table.rules().copied().collect() }
    }

    /// The rule that a call gets. Buffers are taken as not registered: no query says that they are.
    pub fn rule(&self, query: &Query<'_>) -> Option<&Rule> {
        let available = |rule: &&Rule| query.gated.mask.allows(Head::Pair, rule.pair.index());
        self.rules.iter().filter(|rule| rule.matches(query)).find(available)
    }
}

impl Rule {
    /// Whether a call on a communicator is one that this rule is for.
    pub fn matches(&self, query: &Query<'_>) -> bool {
        let call = query.call;
        self.collective == call.collective
            && (self.min_bytes..=self.max_bytes).contains(&call.bytes)
            && self.nodes.is_none_or(|nodes| nodes == query.nodes)
            && self.ranks.is_none_or(|ranks| ranks == query.ranks)
            && self.pipelined.is_none_or(|pipelined| pipelined == call.pipelined)
            && self.registered != Some(true)
    }
}

impl Channels {
    /// The choice that comes to this count. Between two choices it is the one above: our own tables have such
    /// counts only where NCCL caps it at what the communicator has.
    pub fn choice(self) -> ChannelChoice {
        let Channels::Exactly(count) = self else { return ChannelChoice::OWN };
        let above = ChannelChoice::VALUES.into_iter().find(|&choice| choice >= count && choice > 0);
        above.and_then(ChannelChoice::of).unwrap_or_default()
    }
}

impl Tuner for TableTuner {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        if let Some(settled) = query.settled() {
            return settled;
        }
        let Some(rule) = self.rule(query) else { return Decision::fallback(query, Fallback::NoEntry) };
        let (knobs, gate) = query.gated.pass(&Knobs::with_pair(rule.pair, rule.channels.choice()));
        let reason = gate.map_or(Reason::Policy, Reason::Gate);
        Decision { reason, ..Decision::chosen(query, knobs) }
    }
}
