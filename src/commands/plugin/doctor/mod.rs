//! `plugin doctor`: what a job would do, on one rank, and whether all ranks of it would do the same.
//!
//! Every rank looks at its own surroundings and asks its own library; rank 0 collects what they found and says
//! whether it is the same. NCCL is not started: what only NCCL knows (its cost tables) is looked at by what they
//! are made of.

mod checkup;
mod exchange;
mod facts;
mod job;
mod meant;
mod message;
mod records;
mod report;
mod surroundings;
mod variables;
mod verdict;

use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::args::DoctorArgs;
use crate::exit::Ending;
use crate::launcher::{Asked, Place, Rendezvous};
use crate::session::Session;
use checkup::Checkup;
use job::Job;
use message::Outcome;
use report::Report;
use verdict::Verdict;

/// Looks at this rank, and at the others with them.
pub fn run(args: &DoctorArgs, session: &Session) -> Result<Ending> {
    let get = |name: &str| std::env::var(name).ok();
    let asked = Asked {
        rank: args.rank,
        ranks: args.ranks.map(NonZeroU32::get),
        rendezvous: args.rendezvous.as_deref(),
    };
    let place = Place::find(asked, get)?;
    let timeout = Duration::from_secs(args.timeout);
    if place.ranks == 1 {
        let checkup = Checkup::of(args, &place);
        return conclude(place, vec![checkup], session);
    }
    let rendezvous = Rendezvous::find(asked, &place, get)?;
    let job = Job::find(place.launcher, get);
    if place.rank > 0 {
        let checkup = Checkup::of(args, &place);
        session.output.detail(format_args!("rank {}: going to {rendezvous}", place.rank));
        return match exchange::report(&rendezvous, &place, job, &checkup, timeout)? {
            Outcome::Agree => Ok(Ending::Done),
            Outcome::Differ => Ok(Ending::No),
            Outcome::Failed(why) => bail!("rank 0 says: {why}"),
        };
    }
    // First of all, so that nobody comes in vain.
    let meeting = exchange::open(&rendezvous, job)?;
    let checkup = Checkup::of(args, &place);
    let gathered = meeting.gather(&place, checkup, timeout)?;
    let ending = conclude(place, gathered.checkups.clone(), session);
    gathered.tell(&match &ending {
        Ok(Ending::Done) => Outcome::Agree,
        Ok(Ending::No) => Outcome::Differ,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    });
    ending
}

/// Says what was found.
fn conclude(place: Place, checkups: Vec<Checkup>, session: &Session) -> Result<Ending> {
    let verdict = Verdict::of(&checkups);
    let ending = if verdict.is_good() { Ending::Done } else { Ending::No };
    session.report("plugin doctor", &Report::new(place, checkups, verdict))?;
    Ok(ending)
}
