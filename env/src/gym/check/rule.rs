//! The rules: what each means, and what to do about an environment that breaks it.

use serde::Serialize;

/// One rule of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The spaces describe themselves.
    Spaces,
    /// Resetting works.
    Reset,
    /// Observations are written whole.
    Written,
    /// Steps need an episode.
    Order,
    /// Same seed, same bits.
    Repeat,
    /// A seed's later episodes follow from it.
    Stream,
    /// Same seed, same infos.
    Infos,
    /// Different seeds, different episodes.
    Seeds,
    /// Environments do not disturb each other.
    Isolation,
    /// Observations keep their ranges.
    Range,
    /// Masks allow something, and only what exists.
    Masks,
    /// Without a decision there is one choice.
    Idle,
    /// What is legal is accepted.
    Accept,
    /// What is illegal is refused.
    Refuse,
    /// Rewards are numbers.
    Reward,
    /// Episodes end, and say so.
    End,
}

impl Rule {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Rule; 16] = [
        Rule::Spaces,
        Rule::Reset,
        Rule::Written,
        Rule::Order,
        Rule::Repeat,
        Rule::Stream,
        Rule::Infos,
        Rule::Seeds,
        Rule::Isolation,
        Rule::Range,
        Rule::Masks,
        Rule::Idle,
        Rule::Accept,
        Rule::Refuse,
        Rule::Reward,
        Rule::End,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Spaces => "spaces",
            Rule::Reset => "reset",
            Rule::Written => "written",
            Rule::Order => "order",
            Rule::Repeat => "repeat",
            Rule::Stream => "stream",
            Rule::Infos => "infos",
            Rule::Seeds => "seeds",
            Rule::Isolation => "isolation",
            Rule::Range => "range",
            Rule::Masks => "masks",
            Rule::Idle => "idle",
            Rule::Accept => "accept",
            Rule::Refuse => "refuse",
            Rule::Reward => "reward",
            Rule::End => "end",
        }
    }

    /// What it asks for.
    pub const fn meaning(self) -> &'static str {
        match self {
            Rule::Spaces => "names are unique, ranges are ranges, observations are as wide as the spaces say",
            Rule::Reset => "reset works with a seed, without one, and in the middle of an episode",
            Rule::Written => "reset and step write the whole observation, whatever was in it",
            Rule::Order => "step before reset and after the end is the error NoEpisode",
            Rule::Repeat => {
                "the same seed and actions give the same observations, rewards and flags to the bit"
            }
            Rule::Stream => "episodes after a reset without a seed follow from the last seed",
            Rule::Infos => "the same seed and actions give the same infos",
            Rule::Seeds => "different seeds give episodes that are neither equal nor shifted copies",
            Rule::Isolation => "stepping two environments in turn changes neither",
            Rule::Range => "observed numbers are finite and within their stated range",
            Rule::Masks => "a deciding observation allows a choice in every head, and none that has no label",
            Rule::Idle => "decides is false exactly where every head has one choice",
            Rule::Accept => "every choice that the mask allows is accepted",
            Rule::Refuse => "every other choice is the error Illegal and changes nothing",
            Rule::Reward => "rewards are finite",
            Rule::End => "every episode ends within the bound, with terminated or truncated",
        }
    }

    /// What to do where it is broken.
    pub const fn remedy(self) -> &'static str {
        match self {
            Rule::Spaces => "make the spaces with Spaces::of_knobs, and Observation::new from them",
            Rule::Reset => "let reset start over from any state, keeping nothing but the stream of seeds",
            Rule::Written => "write every number, every mask and `decides` before returning",
            Rule::Order => "keep whether an episode runs, and return EnvError::NoEpisode where none does",
            Rule::Repeat => {
                "draw everything random from generators seeded in reset; read no clock, no address, no global"
            }
            Rule::Stream => "derive the next episode's seed from the last seed and the episode's number only",
            Rule::Infos => "leave clocks, counters of the process and addresses out of the info",
            Rule::Seeds => "hash the seed into a generator of its own; never add it to a counter",
            Rule::Isolation => "keep all state in the environment itself, none in statics or shared cells",
            Rule::Range => "write through the encoder, which clamps, or widen the stated range",
            Rule::Masks => "start masks from the labels, and always leave NCCL's own choice in",
            Rule::Idle => "set `decides` from the mask itself",
            Rule::Accept => "build the mask from the same table that step looks the choice up in",
            Rule::Refuse => "call Spaces::check before anything changes",
            Rule::Reward => "guard divisions by reference times and losses",
            Rule::End => "bound the calls of an episode, and set `truncated` when the bound is reached",
        }
    }

    /// The rule without which this one cannot be judged.
    pub(super) const fn needs(self) -> Option<Rule> {
        match self {
            Rule::Written | Rule::Stream | Rule::Infos | Rule::Isolation | Rule::Refuse => Some(Rule::Repeat),
            _ => None,
        }
    }
}
