//! A worker's beats: that it lives, what it does, and how many steps it has finished. They come from a thread of their
//! own, so that a call that hangs is told from a process that is stopped.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use dynamiccl_gpu::Communicator;

use crate::message::Reply;
use crate::wire::Writer;

/// Time between two beats.
pub const EVERY: Duration = Duration::from_millis(250);

/// What a worker does.
#[derive(Debug, Default)]
pub struct Doing {
    steps: AtomicU64,
    text: Mutex<String>,
    communicator: Mutex<Weak<Communicator>>,
}

impl Doing {
    /// Says what comes next.
    pub fn set(&self, text: impl Into<String>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
        self.steps.fetch_add(1, Relaxed);
    }

    /// What is being done.
    pub fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let doing = self.text();
        match self.communicator().map(|communicator| communicator.trouble()) {
            Some(Err(error)) => Reply::Failed { doing, why: error.to_string(), remote: error.is_remote() },
            _ => Reply::Beat { steps: self.steps.load(Relaxed), doing },
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
