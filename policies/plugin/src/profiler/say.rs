//! Where the profiler says what it has to say: NCCL's log, or stderr for versions that give none.

use crate::logger::{Logger, complain};

/// A place to say things.
#[derive(Debug, Clone, Copy)]
pub struct Voice(Option<Logger>);

impl Voice {
    /// NCCL's log where there is one.
    pub fn new(logger: Option<Logger>) -> Self {
        Voice(logger)
    }

    /// Says what a user must know.
    pub fn warn(self, text: &str) {
        match self.0 {
            Some(logger) => logger.warn(text),
            None => complain(&mut std::io::stderr(), text),
        }
    }

    /// Says what a user may want to know.
    pub fn info(self, text: &str) {
        if let Some(logger) = self.0 {
            logger.info(text);
        }
    }
}
