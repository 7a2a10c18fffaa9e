//! Everything that produces a time or a reward: clusters, NCCL's own decision, the performance
//! model and the environment over them.
//!
//! Data goes one way: a cluster gives NCCL's decision its graphs and the model its links; a world draws the model's hidden
//! constants; the environment asks both. Nothing here knows how a policy is trained or what a command line looks like.
//!
//! The modules by layer, from what needs none of the others:
//!
//! * **what NCCL does**: [`cluster`] (a machine) and [`nccl`] (its decision there, to the bit)
//! * **what a call takes**: [`model`] (a closed form), [`world`] (a draw of all that it leaves open), [`sim`] (both beside
//!   NCCL's own decision)
//! * **what runs**: [`workload`] (the calls of an iteration), [`job`] (one on a machine), [`curriculum`] (which are drawn)
//! * **what was measured**: [`measure`] and [`trace`] read files; [`swept`] makes a recorded sweep a machine, [`lived`] real
//!   ranks, and `known` is either for who asks; [`recall`] asks about a recorded job again
//! * **environments**: [`sim_env`] behind the contract [`gym`], with what a step consists of: [`reward`], [`trigger`],
//!   `memory`, and `carrier` over [`schedules`]; [`asking`] and [`question`] for who wants a tuner's answer and no step
//! * **judging**: [`evaluate`] (tuners on the same calls), [`headroom`] (what there is to win), [`validate`] (the model beside
//!   measurements), [`calibrate`] (the model taught one cluster)
//! * **worlds of their own**: [`wan`] (rings across datacentres), [`rails`] (optical circuits), [`tuccl`] (MSCCL's settings)
//! * **tools**: [`least_squares`], [`once`], [`statistics`], [`text`], [`threads`], [`whole`]
#![forbid(unsafe_code)]

pub mod asking;
pub mod calibrate;
mod carrier;
pub mod cluster;
pub mod curriculum;
pub mod evaluate;
pub mod gym;
pub mod headroom;
pub mod job;
mod known;
pub mod least_squares;
pub mod lived;
pub mod measure;
mod memory;
pub mod model;
pub mod nccl;
pub mod once;
pub mod question;
pub mod rails;
pub mod recall;
pub mod reward;
pub mod schedules;
pub mod sim;
pub mod sim_env;
pub mod statistics;
pub mod swept;
pub mod text;
pub mod threads;
pub mod trace;
pub mod trigger;
pub mod tuccl;
pub mod validate;
pub mod wan;
pub mod whole;
pub mod workload;
pub mod world;
