//! Who is judged: tuners by name, and the two that no tuner can be because they know the truth.

use std::fmt;

use dynamiccl_spec::Tuner;
use dynamiccl_spec::features::Hidden;

use super::report::Kind;

/// Makes a tuner from a seed; every thread makes its own.
pub type Make = Box<dyn Fn(u64) -> Box<dyn Tuner> + Send + Sync>;

/// One that is judged.
#[derive(Debug)]
pub struct Entrant {
    /// Its name in tables and files.
    pub name: String,
    /// What kind of player it is, in reports.
    pub kind: Kind,
    /// How it chooses.
    pub player: Player,
    /// What it is not told of a job.
    pub hidden: Hidden,
}

/// How an entrant chooses.
pub enum Player {
    /// As a tuner: by what it is told.
    Tuner(Make),
    /// The smallest true time of every call, with any number of threads at any call.
    Oracle,
    /// The best fixed knobs of every cell over the worlds in which it is judged: nothing that is told
    /// nothing can be better.
    Bayes,
}

impl Entrant {
    /// A tuner.
    pub fn tuner(name: &str, make: impl Fn(u64) -> Box<dyn Tuner> + Send + Sync + 'static) -> Self {
        Entrant::new(name, Kind::Tuner, Player::Tuner(Box::new(make)))
    }

    /// The smallest true time of every call.
    pub fn oracle() -> Self {
        Entrant::new("oracle", Kind::Oracle, Player::Oracle)
    }

    /// The best fixed knobs of every cell.
    pub fn bayes() -> Self {
        Entrant::new("bayes", Kind::Bayes, Player::Bayes)
    }

    /// The same, of another kind in reports.
    pub fn of_kind(self, kind: Kind) -> Self {
        Entrant { kind, ..self }
    }

    /// The same, not told these features of a job. What knows the truth does not care.
    pub fn hiding(self, hidden: Hidden) -> Self {
        Entrant { hidden, ..self }
    }

    fn new(name: &str, kind: Kind, player: Player) -> Self {
        Entrant { name: name.to_owned(), kind, player, hidden: Hidden::default() }
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Player::Tuner(_) => "Tuner",
            Player::Oracle => "Oracle",
            Player::Bayes => "Bayes",
        })
    }
}
