//! Panics on demand, so that tests can show what every entry point does then. Outside of tests it is nothing.

#[cfg(not(test))]
#[inline(always)]
pub fn point(_: &str) {}

#[cfg(test)]
pub use injected::{point, with};

#[cfg(test)]
mod injected {
    use std::cell::Cell;

    thread_local! {
        static WHERE: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Panics if a test has asked for it here, once.
    pub fn point(name: &str) {
        if WHERE.get() == Some(name) {
            WHERE.set(None);
            panic!("injected at {name}");
        }
    }

    /// Runs this with a panic where a point has this name, and says whether it came to it.
    pub fn with(name: &'static str, work: impl FnOnce()) -> bool {
        WHERE.set(Some(name));
        work();
        WHERE.take().is_none()
    }
}
