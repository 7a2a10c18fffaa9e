//! A worker's beats: that it lives, what it does, and how many steps of that it has begun. They come from a thread of their
//! own, so that a call that hangs is told from a process that is stopped.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use dynamiccl_gpu::Communicator;

use crate::message::Reply;
use crate::wire::Writer;

/// Time between two beats.
pub const EVERY: Duration = Duration::from_millis(250);

/// What a worker does.
#[derive(Debug)]
pub struct Doing {
    step: Mutex<Step>,
    communicator: Mutex<Weak<Communicator>>,
}

/// What is being done now.
#[derive(Debug)]
struct Step {
    /// Which step it is of what was asked last; 0 where nothing is asked, or not begun.
    number: u64,
    text: String,
}

impl Doing {
    /// Nothing yet.
    pub fn starting() -> Self {
        let step = Step { number: 0, text: "starting".to_owned() };
        Doing { step: Mutex::new(step), communicator: Mutex::default() }
    }

    fn step(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what comes next.
    pub fn set(&self, text: impl Into<String>) {
        let mut step = self.step();
        (step.number, step.text) = (step.number + 1, text.into());
    }

    /// The same goes on, and has come so far.
    pub fn goes_on(&self) {
        self.step().number += 1;
    }

    /// What was asked is done. Steps of the next begin anew: not every rank is asked the same number of things, and
    /// who is behind shows by those of the same.
    pub fn rest(&self) {
        *self.step() = Step { number: 0, text: "waiting for the next request".to_owned() };
    }

    /// What is being done.
    pub fn text(&self) -> String {
        self.step().text.clone()
    }

    /// Looks after a communicator from now on.
    pub fn watch(&self, communicator: Weak<Communicator>) {
        *self.communicator.lock().unwrap_or_else(PoisonError::into_inner) = communicator;
    }

    fn communicator(&self) -> Option<Arc<Communicator>> {
        self.communicator.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// What is to be said: that all is well, or what NCCL's own threads have met.
    fn beat(&self) -> Reply {
        // The lock is not kept while NCCL is asked: who works would wait for it.
        let (steps, doing) = {
            let step = self.step();
            (step.number, step.text.clone())
        };
        match self.communicator().map(|communicator| communicator.trouble()) {
            Some(Err(error)) => Reply::Failed { doing, why: error.to_string(), remote: error.is_remote() },
            _ => Reply::Beat { steps, doing },
        }
    }
}

/// Lets who started this process hear that it lives, for as long as somebody listens: its standard input leads there under
/// another launcher, and nowhere else. That this may wait for the other side must not keep the coordinator waiting.
pub fn pulse() {
    let Ok(line) = io::stdin().as_fd().try_clone_to_owned() else { return };
    let mut line = File::from(line);
    thread::spawn(move || {
        while line.write_all(b".").is_ok() {
            thread::sleep(EVERY);
        }
    });
}

/// Beats until there is trouble, or until nobody hears it: then it is `alone`.
pub fn start(doing: Arc<Doing>, writer: Arc<Writer>, alone: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        loop {
            let beat = doing.beat();
            let trouble = matches!(beat, Reply::Failed { .. });
            if writer.send(&beat).is_err() {
                return alone();
            }
            if trouble {
                return;
            }
            thread::sleep(EVERY);
        }
    });
}
