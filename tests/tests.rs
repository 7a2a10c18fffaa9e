//! Whole-program tests: one binary, one temporary folder per test, the real command line.

/// A folder of its own for each test, and the program ready to run in it.
mod util;

/// What every command shares: help, exit codes, usage errors.
mod cli;

/// `simulate`.
mod simulate;

/// `decide`.
mod decide;

/// `validate`.
mod validate;

/// `calibrate`.
mod calibrate;

/// `tune`.
mod tune;

/// `synth` and `tune --joint`.
mod synth;

/// `check-env`.
mod check_env;

/// `train`.
mod train;

/// `eval`.
mod eval;

/// `inspect`.
mod inspect;

/// `export`.
mod export;

/// `plugin`.
mod plugin;
mod plugin_doctor;
mod plugin_ranks;

/// `live`.
mod live;
/// `live train`.
mod live_train;
/// `rails`.
mod rails;
/// `wan`.
mod wan;

/// `bench`.
mod bench;

/// What the documentation promises.
mod docs;
mod state;
