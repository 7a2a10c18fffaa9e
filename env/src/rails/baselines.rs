//! Controllers that need no learning: on demand, the paper's rule, a static split, and the best path by a rule of
//! thumb.

use super::control::{Controller, Decision, Past, Request};
use super::fabric::Route;

/// The same answer to every request.
#[derive(Debug, Clone, Copy)]
pub struct Always {
    name: &'static str,
    decision: Decision,
}

impl Always {
    /// Circuits change when a request is there.
    pub const ON_DEMAND: Always = Always { name: "on_demand", decision: Decision::DEMAND };
    /// Circuits change as soon as the calls before have ended, as profiled: the paper's provisioning.
    pub const PROVISIONED: Always = Always { name: "provisioned", decision: Decision::RULE };
    /// Ports are split between the axes and never change.
    pub const STATIC_SPLIT: Always = Always { name: "static_split", decision: Decision::SPLIT };
}

impl Controller for Always {
    fn name(&self) -> &str {
        self.name
    }

    fn decide(&mut self, _: &Request, _: &Past) -> Decision {
        self.decision
    }
}

/// Takes the path on which a request, and the shift back after it, would delay the profiled iteration least.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl Greedy {
    /// µs by which a path would delay the profiled iteration.
    fn cost(request: &Request, route: Route) -> f64 {
        let exposed = |window: f64| (request.delay_us - window).max(0.0);
        let own = request.axis as usize;
        let (alone, both) = (request.ports[own], request.ports[2]);
        let before = match route {
            Route::Host => 0.0,
            Route::Optical => exposed(request.window_us * request.window_seen[0]),
            Route::Split if alone + both >= 1.0 => 0.0,
            Route::Split => exposed(request.window_us * request.window_seen[0]),
        };
        let longer = request.micros[route as usize] - request.micros[Route::Optical as usize];
        let back = if route == Route::Optical {
            (1.0 - request.same_next) * exposed(request.next_window_us)
        } else {
            0.0
        };
        (before + longer - request.slack_us).max(0.0) + back
    }
}

impl Controller for Greedy {
    fn name(&self) -> &str {
        "greedy"
    }

    fn decide(&mut self, request: &Request, _: &Past) -> Decision {
        let costs = Route::ALL.map(|route| (route, Greedy::cost(request, route)));
        let first = costs[0];
        let (route, _) =
            costs[1..].iter().fold(first, |best, &next| if next.1 < best.1 { next } else { best });
        Decision { route, provision: !request.surprise }
    }
}
