//! The environment: every feature has a cause that changes a time, every gate and every term of the reward
//! can be seen at work, curricula hold what they promise.

mod curricula;
mod gates;
mod mechanisms;
mod networks;
mod replay;
mod rewards;
mod scene;
mod schedules;
mod survey;
mod vector;
